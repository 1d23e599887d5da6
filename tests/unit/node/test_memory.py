"""The node's memory is that of the processes below the one that holds it, and of no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from node import memory
from node.namespaces import Namespaces

# A process with a child, which says when the child is there.
FAMILY = "import subprocess, sys; c = subprocess.Popen(['sleep', '60']); print('there', flush=True); c.wait()"


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    parent = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "there\n"
    yield parent
    os.killpg(parent.pid, 9)
    parent.communicate()


def test_processes_below_it_are_counted_by_name_and_others_are_not(family: subprocess.Popen[str]) -> None:
    held = memory.held(Namespaces(family.pid, ""))
    assert held["sleep"] > 0
    assert set(held) == {"sleep", memory._read(family.pid, "comm").strip()}


def test_a_process_that_is_gone_holds_nothing() -> None:
    assert memory.held(Namespaces(2**22 + 1, "")) == {}
