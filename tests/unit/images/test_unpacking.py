"""A docker-archive, read and laid out."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from images.unpacking import Image, opened


def tarred(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def archived(folder: Path, *layers: dict[str, bytes]) -> Image:
    settings = {
        "config": {
            "User": "10001:10001",
            "Env": ["PATH=/bin", "EMPTY="],
            "Entrypoint": ["/bin/a", "--"],
            "Labels": {"title": "a"},
        },
        "history": [{"created_by": "a step"}],
    }
    names = [f"{number}.tar" for number in range(len(layers))]
    manifest = [{"Config": "c.json", "RepoTags": ["docker.io/library/a:1"], "Layers": names}]
    parts = {"manifest.json": json.dumps(manifest).encode(), "c.json": json.dumps(settings).encode()}
    (folder / "a.tar").write_bytes(tarred(parts | {n: tarred(f) for n, f in zip(names, layers, strict=True)}))
    return opened(folder / "a.tar")


def test_a_layer_that_deletes_is_refused(tmp_path: Path) -> None:
    image = archived(tmp_path, {"a": b"old"}, {".wh.a": b""})
    with pytest.raises(RuntimeError, match="deletes files"):
        image.unpack(tmp_path / "root")


def test_a_word_is_found_in_the_layer_that_holds_it_even_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("images.unpacking._BLOCK", 7)
    image = archived(tmp_path, {"a": b"nothing"}, {"b": b"....a needle in hay"})
    assert image.finds(b"needle") == ["1.tar"]
    assert image.finds(b"pin") == []


def test_a_word_in_the_settings_is_found(tmp_path: Path) -> None:
    assert archived(tmp_path, {}).finds(b"a step") == ["settings"]


def test_a_deleted_file_of_a_lower_layer_is_still_found(tmp_path: Path) -> None:
    image = archived(tmp_path, {"a": b"secret"}, {".wh.a": b""})
    assert image.finds(b"secret") == ["0.tar"]
