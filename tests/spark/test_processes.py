"""The job as people start it: a process of its own, and through spark-submit. Each starts a JVM, so these are slow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
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
