"""Images of one static program, as archives that containerd imports, without a builder. In: a program. Out: a tar file.

The format is ``docker save``'s: a manifest, a configuration and one layer. Its times are zero, so that the same program
gives the same bytes. Called by ``images``.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

EXECUTABLE, READABLE = 0o755, 0o644


def of_program(image: str, program: Path, target: Path) -> None:
    """Write an image that holds that program, runs it, and has nothing else."""
    layer = _tar({program.name: program.read_bytes()}, EXECUTABLE)
    digest = hashlib.sha256(layer).hexdigest()
    configuration = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "Env": ["PATH=/"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": program.name}],
        },
        sort_keys=True,
    ).encode()
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [image], "Layers": ["layer.tar"]}]).encode()
    target.write_bytes(_tar({"layer.tar": layer, name: configuration, "manifest.json": manifest}, READABLE))


def _tar(files: Mapping[str, bytes], mode: int) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()
