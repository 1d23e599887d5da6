"""An executor that is lost on the way: its task is repeated on another, and the table is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples.sample_files import list_rounds
from testkit.loads.load_histories import steady
from testkit.loads.sample_files import write_rounds
from waiting import limit

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Two executors in processes of their own. The first try of the second hour kills the one that it runs on.
SCRIPT = """
import os, sys
from functools import partial
from pathlib import Path
from bellwether_load.engines.spark import SparkEngine
from bellwether_load.jobs.sessions import session
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples.sample_files import list_rounds

uri, marker, tries = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

def executor():
    process = os.getpid()
    while "java" not in Path(f"/proc/{process}/comm").read_text():
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")")[1].split()[1])
    return process

def deadly(due):
    if due.hour % 7200 and not marker.exists():
        marker.write_text("lost")
        os.kill(executor(), 9)
    return roll_hour(uri, due)

settings = {
    "spark.task.maxFailures": tries,
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
}
with session("lost", master="local-cluster[2,1,512]", memory="512m", settings=settings) as spark:
    due = due_hours(Store.open(uri), list_rounds(Store.open(uri)))
    print(len(due), sum(one.rows for one in SparkEngine(spark).run(deadly, due)))
"""


def rolled_on_spark(folder: Path, tries: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, str(folder / "store"), str(folder / "lost"), str(tries)]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit(280), check=False)


def contents(folder: Path) -> dict[str, bytes]:
    store = Store.open(str(folder / "store"))
    return {file.path: store.read_bytes(file.path) for file in list_rollups(store)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rounds(Store.open(str(tmp_path / "store")), {("apples", 0): steady(200), ("pears", 0): steady(90)})
    return tmp_path


def test_the_loss_of_an_executor_does_not_change_rollups(folder: Path):
    done = rolled_on_spark(folder, tries=4)
    assert (done.returncode, done.stdout) == (0, "4 6\n"), done.stderr[-3000:]
    assert (folder / "lost").exists()
    found = contents(folder)
    store = Store.open(str(folder / "store"))
    store.delete_directory("rollups")
    for due in due_hours(store, list_rounds(store)):
        roll_hour(str(folder / "store"), due)
    assert contents(folder) == found


def test_without_another_try_the_loss_of_an_executor_fails_the_job(folder: Path):
    done = rolled_on_spark(folder, tries=1)
    assert done.returncode != 0
    assert (folder / "lost").exists()
    assert len(contents(folder)) < 4
