"""Images as archives that containerd imports, written without a builder. In: files, tar archives. Out: a tar file.

The format is ``docker save``'s: a manifest, a configuration and layers. Times and owners are zero, so that the same
files give the same bytes. Called by ``images`` and for images of a test's own.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EXECUTABLE, READABLE = 0o755, 0o644


def of_program(image: str, program: Path, target: Path) -> None:
    """Write an image that holds that program, runs it, and has nothing else."""
    layer = target.with_name(f"{program.name}.layer")
    write_layer({program.name: program}, layer)
    write_image(image, [layer], {"Entrypoint": [f"/{program.name}"], "Env": ["PATH=/"]}, target)
    layer.unlink()


def write_layer(files: Mapping[str, Path], target: Path) -> None:
    """Write a layer of files and whole folders, each at the path in the image that it is named by.

    Who may execute a file here may do so there; links are followed. Folders above them are made as they are unpacked.
    """
    with tarfile.open(target, "w") as layer:
        for name, source in files.items():
            found = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
            for path in found:
                inside = name if source.is_file() else f"{name}/{path.relative_to(source)}"
                member = tarfile.TarInfo(inside)
                member.size = path.stat().st_size
                member.mode = EXECUTABLE if path.stat().st_mode & 0o111 else READABLE
                with path.open("rb") as content:
                    layer.addfile(member, content)


def write_image(image: str, layers: Sequence[Path], runs: Mapping[str, Any], target: Path) -> None:
    """Write an image of these layers, the lowest first; ``runs`` is its configuration in Docker's words."""
    digests = [_digest(layer) for layer in layers]
    configuration = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": dict(runs),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        },
        sort_keys=True,
    ).encode()
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    names = [f"{digest}.tar" for digest in digests]
    manifest = json.dumps([{"Config": name, "RepoTags": [image], "Layers": names}]).encode()
    with tarfile.open(target, "w") as archive:
        for layer_name, layer in zip(names, layers, strict=True):
            member = tarfile.TarInfo(layer_name)
            member.size = layer.stat().st_size
            with layer.open("rb") as content:
                archive.addfile(member, content)
        for text_name, text in ((name, configuration), ("manifest.json", manifest)):
            member = tarfile.TarInfo(text_name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
