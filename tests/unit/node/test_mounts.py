"""What no namespace's end takes away, the containers' control groups, is removed, and nothing else is."""

from __future__ import annotations

from pathlib import Path

from node import mounts
from node.places import CGROUP


def test_the_groups_of_every_hierarchy_are_removed_with_all_below_them_and_no_others(tmp_path: Path) -> None:
    for hierarchy in ("memory", "cpu"):
        (tmp_path / hierarchy / CGROUP / "container" / "inner").mkdir(parents=True)
        (tmp_path / hierarchy / "somebody-elses").mkdir()
    mounts.remove_cgroups(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["cpu", "memory", "somebody-elses", "somebody-elses"]


def test_the_groups_of_a_single_hierarchy_are_removed(tmp_path: Path) -> None:
    (tmp_path / CGROUP / "container").mkdir(parents=True)
    (tmp_path / "init.scope").mkdir()
    mounts.remove_cgroups(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["init.scope"]


def test_where_there_is_no_group_there_is_nothing_to_do(tmp_path: Path) -> None:
    mounts.remove_cgroups(tmp_path)
    assert list(tmp_path.iterdir()) == []
