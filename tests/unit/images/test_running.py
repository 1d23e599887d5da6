"""What a container is allowed, as runc is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from images import machine
from images.running import Container, Room, Unpacked
from images.unpacking import Image


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The bundle of a container with a room, laid out and not started."""
    monkeypatch.setattr(machine, "require_root", lambda _doing: None)
    monkeypatch.setattr(machine, "require_programs", lambda _packages: None)
    config = {
        "User": "10001:10002",
        "Env": ["PATH=/bin", "HOME=/tmp"],
        "Entrypoint": ["tini", "--", "a"],
        "WorkingDir": "/tmp",
    }
    image = Image(tmp_path / "a.tar", [], [], {"config": config})

    def laid_out(room: Room | None = None, *arguments: str) -> Any:
        container = Container(Unpacked(image, tmp_path / "root"), arguments, tmp_path / "containers", room)
        return json.loads((tmp_path / "containers" / container.name / "config.json").read_text())

    return laid_out


def test_it_runs_as_the_images_user_with_a_read_only_root_and_no_rights(settings: Any) -> None:
    told = settings()
    assert told["process"]["user"] == {"uid": 10001, "gid": 10002}
    assert told["root"]["readonly"]
    assert told["process"]["noNewPrivileges"]
    assert set(map(tuple, told["process"]["capabilities"].values())) == {()}


def test_the_entrypoint_and_the_arguments_are_joined(settings: Any) -> None:
    assert settings(None, "operator", "-n", "x")["process"]["args"] == ["tini", "--", "a", "operator", "-n", "x"]
    assert settings(Room(entrypoint=["b"]), "c")["process"]["args"] == ["b", "c"]


def test_a_rooms_variables_win_over_the_images(settings: Any) -> None:
    told = settings(Room(environment={"HOME": "/tmp/home"}))
    assert told["process"]["env"] == ["PATH=/bin", "HOME=/tmp/home"]


def test_what_is_shown_can_be_read_alone_and_what_is_given_can_be_written(settings: Any, tmp_path: Path) -> None:
    mounts = settings(Room(shown={"/tmp/a": tmp_path}, given={"/tmp/b": tmp_path}))["mounts"]
    by_place = {mount["destination"]: mount["options"] for mount in mounts}
    assert "ro" in by_place["/tmp/a"]
    assert "rw" in by_place["/tmp/b"]
    assert list(by_place).index("/tmp") < list(by_place).index("/tmp/a")  # else it would be hidden


def test_the_network_is_ours_and_processes_and_mounts_are_its_own(settings: Any) -> None:
    kinds = {namespace["type"] for namespace in settings()["linux"]["namespaces"]}
    assert {"pid", "mount"} <= kinds
    assert "network" not in kinds
