"""A tool's output goes to its log, and its failure is one sentence that names the log."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from realparts import toolruns
from realparts.toolruns import DownloadFailed, Stopped, run


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLWETHER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolruns, "_stopped", threading.Event())
    return tmp_path / "cache"


def test_what_a_tool_prints_is_in_its_log_alone(own_cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("tool", ["sh", "-c", "echo one; echo two >&2"], doing="trying") == ["one", "two"]
    assert (own_cache / "logs" / "tool.log").read_text() == "one\ntwo\n"
    assert capfd.readouterr() == ("", "")


def test_a_known_cause_is_one_sentence(own_cache: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"^trying failed: the disk is full: .*tool\.log$"):
        run("tool", ["sh", "-c", "echo no space left on device; exit 1"], doing="trying")


def test_an_unknown_cause_is_followed_by_the_last_lines() -> None:
    with pytest.raises(DownloadFailed, match=r"trying failed \(exit status 3\)(.|\n)*    odd$"):
        run("tool", ["sh", "-c", "echo odd; exit 3"], doing="trying")


def test_a_tool_that_is_not_there_is_named() -> None:
    with pytest.raises(DownloadFailed, match="trying failed: cannot start tool"):
        run("tool", ["no-such-tool"], doing="trying")


def test_stopping_ends_what_runs_and_lets_nothing_begin() -> None:
    threading.Timer(0.3, toolruns.stop_all).start()
    with pytest.raises(Stopped):
        run("tool", ["sleep", "600"], doing="trying")
    with pytest.raises(Stopped):
        run("tool", ["true"], doing="trying")
