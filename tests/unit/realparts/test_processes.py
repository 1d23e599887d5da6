"""A process that a test starts ends with it, unless it is detached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from waiting import until


def state(pid: int) -> str:
    """The kernel's letter for what a process does; X when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


PARENT = """
import sys, threading
from pathlib import Path
from realparts.processes import ManagedProcess
process = ManagedProcess("child", [sys.executable, "-I", "-c", "import time; time.sleep(120)"], log=Path(sys.argv[1]))
# From a thread that ends at once: that must not be taken for the death of the parent.
starter = threading.Thread(target=process.start); starter.start(); starter.join()
if "detach" in sys.argv: process.detach()
print(process.pid, flush=True)
sys.stdin.read()
"""


def parent(tmp_path: Path, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    started = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    return started, int(started.stdout.readline())


def test_a_killed_parent_takes_its_children_along(tmp_path: Path) -> None:
    killed, child = parent(tmp_path)
    until(lambda: state(child) == "S")
    time.sleep(0.2)
    assert state(child) not in "XZ"
    killed.kill()
    killed.communicate()
    until(lambda: state(child) in "XZ")


def test_a_detached_process_outlives_its_parent(tmp_path: Path) -> None:
    killed, child = parent(tmp_path, "detach")
    killed.kill()
    killed.communicate()
    time.sleep(0.3)
    assert state(child) not in "XZ"
    os.kill(child, signal.SIGKILL)
