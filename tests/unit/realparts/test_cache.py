"""The cache keeps whole things only, makes each once, and never makes two askers wait for different results."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from realparts import cache, downloads


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
    with pytest.raises(downloads.DownloadFailed, match=r"x\.jar has sha256 .* is pinned"):
        downloads.check(tmp_path / "x.jar", "0" * 64)


def test_ivy_that_resolves_other_jars_than_the_lock_names_is_refused(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    def resolve_one(*command: str | Path, doing: str) -> None:
        pattern = Path(str(command[command.index("-retrieve") + 1]))
        pattern.parent.mkdir(parents=True)
        (pattern.parent / "stranger-1.0.jar").touch()

    monkeypatch.setattr(downloads, "run", resolve_one)
    monkeypatch.setattr(downloads, "ivy_jar", lambda: Path("ivy.jar"))
    with pytest.raises(downloads.DownloadFailed, match=r"stranger-1\.0\.jar"):
        downloads.ivy_jars(Path("java"), "kafka-4.3.1", Path("ivy.xml"))
    assert not list((own_cache / "jars").iterdir())
