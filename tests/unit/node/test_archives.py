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
    (folder / "pause").chmod(0o755)
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


def test_a_layer_holds_whole_folders_and_keeps_what_may_be_executed(tmp_path: Path) -> None:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").write_text("runs")
    (tmp_path / "java" / "bin" / "java").chmod(0o755)
    (tmp_path / "java" / "release").write_text("25")
    archives.write_layer({"opt/java": tmp_path / "java", "etc/one": tmp_path / "java" / "release"}, tmp_path / "layer")
    with tarfile.open(tmp_path / "layer") as layer:
        assert {m.name: (m.mode, m.uid) for m in layer} == {
            "opt/java/bin/java": (0o755, 0),
            "opt/java/release": (0o644, 0),
            "etc/one": (0o644, 0),
        }


def test_layers_keep_their_order(tmp_path: Path) -> None:
    layers = []
    for name in ("lower", "upper"):
        (tmp_path / name).write_text(name)
        archives.write_layer({"file": tmp_path / name}, tmp_path / f"{name}.tar")
        layers.append(tmp_path / f"{name}.tar")
    archives.write_image("x:1", layers, {}, tmp_path / "image.tar")
    found = members((tmp_path / "image.tar").read_bytes())
    (manifest,) = json.loads(found["manifest.json"])
    assert [found[name] for name in manifest["Layers"]] == [layer.read_bytes() for layer in layers]
