"""A session that ends leaves no JVM behind, and another can follow it in the same process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from waiting import limit

pytestmark = pytest.mark.spark

SCRIPT = """
import os
from pathlib import Path
from bellwether_load.jobs.sessions import session

def children():
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids]

for _ in range(2):
    with session("short", master="local[1]", memory="512m") as spark:
        print("counted", spark.range(7).count(), "next to", *children())
    print("left", *children())
"""


@pytest.mark.slow
def test_no_jvm_is_left_when_a_session_has_ended():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=limit(280), check=True
    )
    assert done.stdout.splitlines() == ["counted 7 next to java", "left"] * 2
