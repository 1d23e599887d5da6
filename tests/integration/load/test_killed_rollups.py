"""Processes that roll up are killed by the system at any moment, two at a time: in the end the table is the same."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import list_rounds
from testkit.loads.sample_rounds import rows

# Enough for a rollup to take a while.
HOURS, PARTITIONS = 3, 300
ROLL = """
import sys
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples.sample_files import list_rounds
print("begun", flush=True)
store = Store.open(sys.argv[1])
for due in due_hours(store, list_rounds(store)):
    roll_hour(sys.argv[1], due)
"""


def rolling(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", ROLL, str(directory)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def contents(directory: Path) -> dict[str, bytes]:
    store = Store.open(str(directory))
    return {file.path: store.read_bytes(file.path) for file in list_rollups(store)}


def test_rollups_killed_at_any_moment_are_the_same_in_the_end(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for minute in range(60 * HOURS):
        for directory in (whole, killed):
            sample_files.write_round(Store.open(str(directory)), rows(minute, PARTITIONS), f"{minute:08x}")
    for due in due_hours(Store.open(str(whole)), list_rounds(Store.open(str(whole)))):
        roll_hour(str(whole), due)
    wanted = contents(whole)
    for number in range(5):
        processes = [rolling(killed), rolling(killed)]
        time.sleep(0.15 * number)
        for process in processes:
            process.kill()
            process.wait()
        assert contents(killed).items() <= wanted.items()
    # Two at once, to their ends.
    for process in [rolling(killed), rolling(killed)]:
        assert process.wait() == 0
    assert contents(killed) == wanted
