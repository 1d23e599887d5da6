"""``meta.properties`` says whose a log directory is; without it the directory has no owner."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bellwether.adapters.files.meta_properties import (
    LogDirIdentity,
    read_broker,
    read_log_dir,
    replaced,
    same_broker,
)
from bellwether.ports.errors import Terminal, Transient
from testkit.kafka.formatted_directories import formatted


def test_a_formatted_directory_names_its_broker_and_cluster(tmp_path: Path) -> None:
    found = read_log_dir(formatted(tmp_path, 3, "MkU3OEVBNTcwNTJENDM2Qk", "8dJ"))
    assert found == LogDirIdentity(3, tmp_path, "MkU3OEVBNTcwNTJENDM2Qk", "8dJ")


def test_of_foreign_text_only_what_id_may_have_is_taken(tmp_path: Path) -> None:
    found = read_log_dir(formatted(tmp_path, 3, "\x1b[2Jc1 " + "x" * 5000, "\u202ed1"))
    assert (found.cluster_id, found.directory_id) == ("2Jc1" + "x" * 60, "d1")


def test_mount_point_of_volume_is_known_by_directory_below(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir(mode=0)
    formatted(tmp_path / "kafka-log104", 104)
    found = read_log_dir(tmp_path)
    assert (found.broker, found.path) == (104, tmp_path / "kafka-log104")


def test_directory_in_another_file_system_root_keeps_its_own_path(tmp_path: Path) -> None:
    formatted(tmp_path / "root" / "var" / "data", 5)
    found = read_log_dir(Path("/var/data"), tmp_path / "root")
    assert (found.broker, found.path) == (5, Path("/var/data"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("version=0\nbroker.id=7\ncluster.id=c1\n", id="ZooKeeper"),
        pytest.param("version=1\r\nnode.id = 7\r\ncluster.id=c1\r\n", id="spaces and carriage returns"),
        pytest.param("node.id=7\nbroker.id=7\ncluster.id=c1", id="both keys agree"),
        pytest.param("#node.id=9\n!broker.id=9\nnode.id\\=x=1\nnode.id:7\ncluster.id=c1\n", id="comments"),
    ],
)
def test_every_version_of_the_file_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    assert (read_log_dir(tmp_path).broker, read_log_dir(tmp_path).cluster_id) == (7, "c1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "neither node.id nor broker.id", id="empty"),
        pytest.param("cluster.id=c1\n", "neither node.id nor broker.id", id="no id"),
        pytest.param("node.id=kafka-3\n", "'kafka-3', which is no broker id", id="a name"),
        pytest.param("node.id=-1\n", "no broker id", id="negative"),
        pytest.param("node.id=2147483648\n", "no broker id", id="larger than Kafka's largest"),
        pytest.param("node.id=\u0663\n", "no broker id", id="a digit of another script"),
        pytest.param("\0\xff" * 40000, "neither", id="not a text"),
    ],
)
def test_a_file_without_an_id_is_waited_for_and_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "meta.properties").write_text(text, encoding="utf-8")
    with pytest.raises(Transient, match=f"{tmp_path}/meta.properties has .*{said}"):
        read_log_dir(tmp_path)


def test_a_directory_that_is_not_formatted_yet_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(Transient, match=r"no meta\.properties in it or right below.*waiting until Kafka has formatted"):
        read_log_dir(tmp_path)
    with pytest.raises(Transient, match=r"none cannot be read.*No such file or directory.*set the path"):
        read_log_dir(tmp_path / "none")


def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.properties")
    with pytest.raises(Transient, match="neither"):
        read_log_dir(tmp_path)


def test_one_file_with_two_ids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("node.id=3\nbroker.id=1\n")
    with pytest.raises(Terminal, match=r"node\.id 3 and broker\.id 1"):
        read_log_dir(tmp_path)


def test_directories_of_two_brokers_are_refused_and_both_named(tmp_path: Path) -> None:
    first, second = formatted(tmp_path / "a", 1), formatted(tmp_path / "b", 3)
    with pytest.raises(
        Terminal, match=f"{first}/meta.properties has node.id 1 of cluster c1, and {second}/meta.properties has 3 of c1"
    ):
        read_broker([first, second])
    with pytest.raises(Terminal, match=r"node\.id 1 of cluster c1, and .* has 3"):
        read_log_dir(tmp_path)


def test_directories_of_two_clusters_are_refused() -> None:
    with pytest.raises(Terminal, match=r"node\.id 1 of cluster c1, and .* has 1 of c2"):
        same_broker([LogDirIdentity(1, Path("/a"), "c1"), LogDirIdentity(1, Path("/b"), "c2")])


def test_broker_is_known_by_directories_that_can_be_read(tmp_path: Path) -> None:
    assert read_broker([tmp_path / "failed", formatted(tmp_path / "b", 3)]).broker == 3
    with pytest.raises(Transient, match="failed cannot be read"):
        read_broker([tmp_path / "failed"])
    with pytest.raises(Transient, match="no log directory open yet"):
        read_broker([])


def test_a_directory_that_became_another_is_noticed(tmp_path: Path) -> None:
    before = read_log_dir(formatted(tmp_path / "data", 3))
    assert replaced(before) == ""
    formatted(tmp_path / "data", 1, directory_id="d2")
    assert "(directory.id d1), was replaced by one of broker 1" in replaced(before)
    formatted(tmp_path / "data", 3, directory_id="d2")
    assert "was replaced by one of broker 3" in replaced(before)
    (tmp_path / "data" / "meta.properties").unlink()
    assert "the log directory of broker 3 was replaced" in replaced(before)
    (tmp_path / "data").rmdir()
    assert "the log directory of broker 3 was replaced" in replaced(before)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_now_proves_no_replacement(tmp_path: Path) -> None:
    before = read_log_dir(formatted(tmp_path / "data", 3))
    (tmp_path / "data" / "meta.properties").chmod(0)
    assert replaced(before) == ""


def test_a_disk_that_fails_proves_no_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_log_dir(formatted(tmp_path / "data", 3))

    def fails(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "open", fails)
    assert replaced(replace(before, file=())) == "", "nor when the file looks like another one"
