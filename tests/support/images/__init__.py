"""Builds the container image for real, runs it without a container engine, and measures it.

``python -m images build --target operator --archive FILE`` gives a docker-archive that containerd and podman import.
Building needs root and Debian's buildah and debootstrap; docs/image.md tells why, and how to build without any of this.
"""
