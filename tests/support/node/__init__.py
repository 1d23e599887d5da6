"""A whole Kubernetes node that runs pods, on this machine and apart from it: ``python -m node up | down | status``.

It lives in namespaces of its own (processes, mounts, network), whose end takes all of it away. Needs root and Debian.
"""
