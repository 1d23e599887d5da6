"""The same plan on a cluster of several processes, a worker lost on the way included."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import write_problem
from realparts.sparkcluster import SparkCluster
from testkit.loads.random_problems import posed
from testkit.loads.small_planner import write_loads

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 25_000  # more than are balanced in the driver


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    asked, known = posed(5, partitions=PARTITIONS, brokers=24)
    where = Store.open(str(folder))
    write_problem(where, "main", asked)
    write_loads(where, "main", known, {s.topic_id: s.topic for s in asked.partitions})
    return folder


@pytest.fixture(scope="module")
def digest(store: Path) -> str:
    """That of the plan that this machine alone makes."""
    return planned(store, "local[2]")


def planned(store: Path, master: str, when: tuple[str, Callable[[], None]] | None = None) -> str:
    """The digest of the plan made on this master. ``when``: what to do as soon as the job tells of that."""
    command = [sys.executable, "-m", "bellwether_load", "plan", "--problem", "main", "--loads", "main"]
    job = subprocess.Popen(
        [*command, "--store", str(store), "--master", master, "--memory", "1g"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    said = []
    with job:
        assert job.stdout is not None
        assert job.stderr is not None
        for line in job.stderr:
            said.append(line)
            if when is not None and when[0] in line:
                when[1]()
                when = None
        told = job.stdout.read()
    assert job.returncode == 0, "".join(said)[-3000:]
    assert when is None, "the job never reported it"
    return told.strip().splitlines()[-1]


def test_a_cluster_of_several_processes_makes_the_same_plan(cluster: SparkCluster, store: Path, digest: str):
    assert planned(store, cluster.master) == digest


def test_a_worker_that_is_lost_on_the_way_costs_time_and_nothing_else(cluster: SparkCluster, store: Path, digest: str):
    assert planned(store, cluster.master, ("round 0", lambda: cluster.kill_worker(0))) == digest
