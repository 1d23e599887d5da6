"""A managed process starts, freezes, ends and is never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from realparts.processes import ManagedProcess, StartFailed
from waiting import until

SLEEPER = [sys.executable, "-I", "-c", "import time; print('awake', flush=True); time.sleep(60)"]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ManagedProcess]:
    process = ManagedProcess("sleeper", SLEEPER, log=tmp_path / "log")
    process.start()
    process.wait_ready(lambda: "awake" in process.tail(), 60)
    yield process
    process.kill()


def state(pid: int) -> str:
    """The kernel's letter for what a process does; X when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_a_process_freezes_goes_on_and_stops(sleeper: ManagedProcess) -> None:
    sleeper.pause()
    until(lambda: state(sleeper.pid) == "T")
    assert sleeper.alive
    sleeper.resume()
    until(lambda: state(sleeper.pid) == "S")
    sleeper.pause()
    sleeper.stop()
    assert not sleeper.alive
    sleeper.stop()  # a second time does nothing


def test_a_stopped_process_starts_again(sleeper: ManagedProcess) -> None:
    first = sleeper.pid
    sleeper.kill()
    sleeper.start()
    assert sleeper.alive
    assert sleeper.pid != first


def test_one_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    process = ManagedProcess("deaf", [sys.executable, "-I", "-c", deaf], log=tmp_path / "log")
    process.start()
    process.wait_ready(lambda: "deaf" in process.tail(), 60)
    process.stop(timeout_seconds=0.2)
    assert not process.alive


def test_a_start_that_fails_shows_the_end_of_the_log(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", "raise SystemExit('the port is taken')"]
    process = ManagedProcess("broken", command, log=tmp_path / "log")
    process.start()
    with pytest.raises(StartFailed, match=r"(?s)broken ended by itself.*the port is taken"):
        process.wait_ready(lambda: False, 60)


def test_a_start_that_takes_too_long_says_so(sleeper: ManagedProcess) -> None:
    with pytest.raises(StartFailed, match=r"(?s)sleeper was not ready.*0.1 s on the reference.*awake"):
        sleeper.wait_ready(lambda: False, 0.1)


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="no-such-program"):
        ManagedProcess("missing", [tmp_path / "no-such-program"], log=tmp_path / "log").start()


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


def test_processes_can_be_started_from_several_threads(tmp_path: Path) -> None:
    many = [ManagedProcess(f"s{n}", SLEEPER, log=tmp_path / f"{n}.log") for n in range(4)]
    threads = [threading.Thread(target=process.start) for process in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(process.alive for process in many)
    for process in many:
        process.kill()
    assert not any(process.alive for process in many)
