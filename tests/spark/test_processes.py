"""The job as people start it, also through spark-submit, and executors that are lost. Each starts a JVM: slow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples.sample_files import list_rounds
from sourcetree import ROOT
from testkit.loads.load_histories import steady
from testkit.loads.sample_files import write_rounds
from waiting import limit

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OUR_LINE = re.compile(r" *\d+\.\d s  .*")


def started(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an empty directory, with the Python of these tests first on the path."""
    directory.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=limit(240), check=False
    )


@pytest.fixture
def history(tmp_path: Path) -> Store:
    store = Store.open(str(tmp_path / "store"))
    write_rounds(store, {("apples", n): steady(10, messages=100 * n) for n in range(5)})
    return store


def test_the_module_and_spark_submit_write_the_same(history: Store, tmp_path: Path):
    asked = ("--store", str(history))
    module = started(tmp_path / "one", sys.executable, "-m", "bellwether_load", "loads", *asked, "--name", "module")
    assert (module.returncode, module.stdout) == (0, "loads/module\n"), module.stderr
    submit = str(Path(sys.executable).parent / "spark-submit")
    script = str(ROOT / "spark" / "submit.py")
    submitted = started(
        tmp_path / "two", submit, "--master", "local[2]", script, "loads", *asked, "--name", "submitted"
    )
    assert submitted.returncode == 0, submitted.stderr
    assert submitted.stdout.endswith("loads/submitted\n")
    one, other = (history.read_bytes(f"loads/{name}/part-00000.parquet") for name in ("module", "submitted"))
    assert one == other
    # Nothing is left behind where it was started, and it says no more than is of use.
    assert list((tmp_path / "one").iterdir()) == []
    others = [line for line in module.stderr.splitlines() if not OUR_LINE.fullmatch(line)]
    assert others == ["WARNING: Using incubator modules: jdk.incubator.vector"]


def test_a_relative_store_is_meant_from_where_the_job_is_started(history: Store, tmp_path: Path):
    done = started(tmp_path, sys.executable, "-m", "bellwether_load", "loads", "--store", "store", "--name", "here")
    assert done.returncode == 0, done.stderr
    assert history.exists("loads/here/part-00000.parquet")


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
