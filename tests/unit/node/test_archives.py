"""An image archive is what ``docker save`` writes: a manifest that names a configuration and layers that match it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from node import archives


def members(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {m.name: f.read() for m in archive if (f := archive.extractfile(m))}


def written(folder: Path, content: bytes = b"\x7fELF program") -> bytes:
    (folder / "pause").write_bytes(content)
    archives.of_program("docker.io/x/pause:1", folder / "pause", folder / "image.tar")
    return (folder / "image.tar").read_bytes()


def test_the_configuration_names_each_layer_by_its_digest(tmp_path: Path) -> None:
    found = members(written(tmp_path))
    ((manifest),) = json.loads(found["manifest.json"])
    configuration = json.loads(found[manifest["Config"]])
    digests = [f"sha256:{hashlib.sha256(found[name]).hexdigest()}" for name in manifest["Layers"]]
    assert configuration["rootfs"]["diff_ids"] == digests
    assert manifest["Config"] == f"{hashlib.sha256(found[manifest['Config']]).hexdigest()}.json"
    assert manifest["RepoTags"] == ["docker.io/x/pause:1"]


def test_the_program_is_alone_in_it_and_runs(tmp_path: Path) -> None:
    found = members(written(tmp_path))
    (manifest,) = json.loads(found["manifest.json"])
    with tarfile.open(fileobj=io.BytesIO(found[manifest["Layers"][0]])) as layer:
        assert [(m.name, m.mode) for m in layer] == [("pause", 0o755)]
    assert json.loads(found[manifest["Config"]])["config"]["Entrypoint"] == ["/pause"]


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    assert written(tmp_path) == written(tmp_path)
    assert written(tmp_path) != written(tmp_path, b"another")
