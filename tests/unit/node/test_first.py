"""Process 1 buries what nobody else would, and leaves its own programs' ends to those who watch over them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from node import first
from node.places import Places
from realparts.processes import ManagedProcess
from waiting import limit

# In a process of its own: it collects every child, and those of the test run are not its to collect.
BURY = """
import subprocess, sys, time
from pathlib import Path
from node import first
from realparts.processes import ManagedProcess

own = ManagedProcess("own", ["true"], log=Path(sys.argv[1]) / "own.log")
stranger = subprocess.Popen(["true"])
strangers = Path(f"/proc/{stranger.pid}")
while "Z" not in (strangers / "stat").read_text():
    time.sleep(0.01)
first.bury([])
print("buried" if not strangers.exists() else "left lying")
own.start()
while "Z" not in Path(f"/proc/{own.pid}/stat").read_text():
    time.sleep(0.01)
first.bury([own])
print("left to its owner" if Path(f"/proc/{own.pid}").exists() and not own.alive else "taken away")
"""


def test_what_ended_is_buried_unless_it_has_an_owner_who_asks(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", BURY, str(tmp_path)], capture_output=True, text=True, timeout=limit(60), check=True
    )
    assert said.stdout.splitlines() == ["buried", "left to its owner"]


def test_each_programs_process_id_is_noted_by_its_name(tmp_path: Path) -> None:
    places = Places(tmp_path)
    process = ManagedProcess("kubelet", ["sleep", "60"], log=tmp_path / "log")
    process.start()
    try:
        first.note(places, [process])
        pid = int((places.pids / "kubelet").read_text())
        assert os.getpgid(pid) == process.pid
    finally:
        process.kill()
