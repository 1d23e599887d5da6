"""The Spark image: its own Java, a plan made and rechecked, and an executor's start as Kubernetes asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import write_problem
from images import measuring
from images.running import Room, Unpacked
from testkit.loads.random_problems import posed
from testkit.loads.small_planner import write_loads

pytestmark = pytest.mark.image

# The container shares our network, but its host's name is in no list of hosts.
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}


@pytest.fixture
def spark(images: Callable[[str], Unpacked]) -> Unpacked:
    return images("spark")


def test_the_jobs_explain_themselves(spark: Unpacked, start: Any) -> None:
    command = Room(entrypoint=["python", "-m", "bellwether_load"])  # as the Jobs of a policy start it
    container = start(spark, "plan", "--help", room=command)
    assert container.wait(120) == 0, container.said()
    assert "--problem" in container.said()
    container = start(spark, "loads", "--help")
    assert container.wait(120) == 0, container.said()
    assert "--days" in container.said()


def test_a_plan_is_made_and_the_other_image_rechecks_it(
    spark: Unpacked, images: Callable[[str], Unpacked], start: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    store = Store.open(str(folder))
    asked, known = posed(5, partitions=300)
    write_problem(store, "main", asked)
    write_loads(store, "main", known, {slot.topic_id: slot.topic for slot in asked.partitions})
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o644)
    room = Room(environment=LOCAL, given={"/run/store": folder})
    began = time.monotonic()
    arguments = ["--store", "/run/store", "--problem", "main", "--loads", "main"]
    job = start(spark, "plan", *arguments, room=room)
    assert job.wait(300) == 0, job.said()
    measuring.note("spark", small_plan_seconds=round(time.monotonic() - began, 1))
    (plan,) = (folder / "plans").iterdir()
    assert plan.name in job.said()
    parts = [
        "--problem=/run/store/problems/main",
        "--loads=/run/store/loads/main",
        f"--plan=/run/store/plans/{plan.name}",
    ]
    recheck = start(images("operator"), "verify-plan", *parts, room=room)
    assert recheck.wait(120) == 0, recheck.said()
    assert f"plan {plan.name}: verified" in recheck.said()


def test_an_executor_starts_with_what_spark_on_kubernetes_tells_it(spark: Unpacked, start: Any) -> None:
    noted = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "256m",
        "SPARK_APPLICATION_ID": "spark-of-a-test",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "a-pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_0": "-Dspark.network.timeout=9s",
        "SPARK_JAVA_OPT_1": "-Dspark.rpc.numRetries=0",
    }
    container = start(spark, "executor", room=Room(environment={**LOCAL, **noted}))
    assert container.wait(120) != 0  # no driver listens there
    assert "127.0.0.1:9" in container.said()
    assert "KubernetesExecutorBackend" in container.said()


def test_an_executor_without_settings_names_what_is_missing(spark: Unpacked, start: Any) -> None:
    container = start(spark, "executor")
    assert container.wait(60) == 1
    assert "SPARK_EXECUTOR_MEMORY" in container.said()
