"""Writes a CycloneDX document of what is released. In: a lock, or an image. Out: a file, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from bellwether import __version__

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)", re.MULTILINE)
INSTALLED = re.compile(r"site-packages/([^/]+)-([^/-]+)\.dist-info/METADATA$")
DEBIAN = re.compile(r"^Package: (\S+)\n(?:[^\n]+\n)*?Version: (\S+)", re.MULTILINE)
Part = tuple[str, str, str]
"""Kind of a package (as in a package URL), name, version."""


def locked(lock: str) -> Iterator[Part]:
    """The distributions of a lock of requirements."""
    yield from (("pypi", name.lower(), version) for name, version in PIN.findall(lock))


def layers(layout: Path) -> Iterator[tarfile.TarFile]:
    """The layers of an image, each open to read."""

    def blob(sum_of: str) -> Path:
        return layout / "blobs" / Path(*sum_of.split(":"))

    (listed,) = json.loads((layout / "index.json").read_text())["manifests"]
    for layer in json.loads(blob(listed["digest"]).read_text())["layers"]:
        with tarfile.open(blob(layer["digest"])) as content:
            yield content


def in_layers(layout: Path) -> Iterator[Part]:
    """The Debian packages and Python distributions of an image."""
    for content in layers(layout):
        for member in content:
            if found := INSTALLED.search(member.name):
                yield "pypi", found[1].replace("_", "-").lower(), found[2]
            elif member.name.endswith("var/lib/dpkg/status") and (file := content.extractfile(member)):
                yield from (("deb", *one) for one in DEBIAN.findall(file.read().decode()))


def files(layout: Path) -> dict[str, str]:
    """Every file of an image by its name: the digest of its content, and its attributes."""
    found = {}
    for content in layers(layout):
        for member in content:
            file = content.extractfile(member) if member.isreg() else None
            found[member.name] = f"{hashlib.sha256(file.read() if file else b'').hexdigest()} {member.get_info()}"
    return found


def written(target: Path, name: str, parts: Iterable[Part], commit: tuple[str, datetime]) -> None:
    """Write the document: what is named, and its parts."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    def component(kind: str, name: str, version: str, type_: ComponentType) -> Component:
        url = PackageURL(kind, "debian" if kind == "deb" else None, name, version)
        return Component(name=name, version=version, type=type_, purl=url, bom_ref=str(url))

    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{target.name}@{commit[0]}"))
    bom.metadata.timestamp = commit[1]
    bom.metadata.component = component("generic", name, __version__, ComponentType.APPLICATION)
    bom.components = {component(*part, ComponentType.LIBRARY) for part in set(parts)}
    bom.register_dependency(bom.metadata.component, bom.components)
    target.write_text(f"{JsonV1Dot6(bom).output_as_string(indent=1)}\n")
