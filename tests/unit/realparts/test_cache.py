"""The cache keeps whole things only, makes each once, and never makes two askers wait for different results."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from realparts import cache, downloads, jars
from realparts.toolruns import DownloadFailed


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLWETHER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.root() == (tmp_path / "cache").resolve()
    monkeypatch.delenv("BELLWETHER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.root() == (tmp_path / "xdg" / "bellwether").resolve()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.root() == (tmp_path / "home" / ".cache" / "bellwether").resolve()


def test_a_thing_is_made_once_for_many_who_ask_at_once() -> None:
    made = []

    def make(staged: Path) -> None:
        made.append(staged)
        time.sleep(0.05)
        staged.write_text("whole")

    seen: list[str] = []
    askers = [threading.Thread(target=lambda: seen.append(cache.once("a/b", "b", make).read_text())) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert seen == ["whole"] * 4
    assert len(made) == 1


def test_what_could_not_be_finished_is_not_kept(own_cache: Path) -> None:
    def fail(staged: Path) -> None:
        staged.write_text("half")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        cache.once("a", "a", fail)
    assert not (own_cache / "a").exists()
    assert list((own_cache / "scratch").iterdir()) == []
    assert cache.once("a", "a", lambda staged: staged.mkdir()).is_dir()


def test_a_file_with_another_sum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_bytes(b"something else")
    with pytest.raises(DownloadFailed, match=r"x\.jar has sha256 .* is pinned"):
        downloads.check(tmp_path / "x.jar", "0" * 64)


def test_a_jar_with_another_sum_is_refused_and_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    def resolve(artifact: object) -> Path:
        jar = own_cache / "x.jar"
        jar.write_bytes(b"something else")
        return jar

    monkeypatch.setattr("jgo.maven.Artifact.resolve", resolve)
    with pytest.raises(DownloadFailed, match=r"x\.jar has sha256 .* is pinned"):
        jars.folder("kafka-tools-4.3.1")
    assert not list((own_cache / "jars").iterdir())


def test_a_registry_that_cannot_be_reached_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(artifact: object) -> Path:
        raise OSError("Failed to establish a new connection: Network is unreachable")

    monkeypatch.setattr("jgo.maven.Artifact.resolve", resolve)
    with pytest.raises(
        DownloadFailed, match=r"fetching org\.apache\.kafka:kafka-tools:4\.3\.1 failed: .*check the network"
    ):
        jars.folder("kafka-tools-4.3.1")


def test_what_a_killed_process_left_is_removed_and_what_others_work_on_stays(own_cache: Path) -> None:
    left = own_cache / "scratch" / "left"
    left.mkdir(parents=True)
    (left / "half").touch()
    with cache.scratch() as mine:
        cache.clear_scratch()
        assert mine.exists()
        assert not left.exists()
