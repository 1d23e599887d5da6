"""The process that holds the namespaces is distinguished from a later one of its id, and its note is read back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from node.namespaces import Namespaces
from realparts import guardian


def sleeper() -> Namespaces:
    pid = subprocess.Popen(["sleep", "60"], start_new_session=True).pid
    return Namespaces(pid, guardian.start_ticks(pid) or "")


@pytest.mark.parametrize("text", ["", "4321", "x y", "1 2 3"])
def test_a_note_that_makes_no_sense_tells_of_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "process").write_text(text)
    assert Namespaces.read(tmp_path / "process") is None
    assert Namespaces.read(tmp_path / "missing") is None


def test_a_later_process_of_the_same_id_is_not_taken_for_it() -> None:
    assert not Namespaces(os.getpid(), "1").alive
    assert Namespaces(os.getpid(), guardian.start_ticks(os.getpid()) or "").alive


def test_a_later_process_of_the_same_id_is_not_killed() -> None:
    stranger = sleeper()
    Namespaces(stranger.pid, "1").end()
    assert stranger.alive
    stranger.end()


def test_holder_whose_parent_does_not_ask_for_its_end_is_gone():
    parent = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; exec sleep 600"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    held = Namespaces(pid, guardian.start_ticks(pid) or "")
    try:
        assert held.alive
        held.end()
        assert not held.alive
    finally:
        parent.kill()
        parent.communicate()
