"""A load plan on Spark whose executors are pods: asked for, made, the same as one machine makes, approved, applied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes.object_names import RUN_LABEL
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether_load.controller.job_commands import file_name
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from node import images, lifecycle
from node.kubectl import eventually
from nodeparts import release
from nodeparts.release import HISTORY, HISTORY_CLAIM, NAMESPACE, POLICY
from realparts.kafka_topics import create_topics
from testkit.kafka.kafka_site import PATIENT
from testkit.loads.skewed_loads import records_a_minute, write_skewed_history
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

if TYPE_CHECKING:
    from node.kubectl import Kubectl
    from node.places import Places
    from nodeparts.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

TOPIC = "uneven"
ASSIGNMENT = [[1, 2, 3]] * 8 + [[1, 3, 2]] * 8
EXECUTORS = 2
# Three pods next to brokers and operators on two cores.
SMALL = {"cpu": "250m", "memory": "1200Mi"}


def uneven(stage: Stage) -> dict[int, Partition]:
    reader = KafkaReader(BrokerPool(Connection(tuple(stage.kafka.external), PLAINTEXT), PATIENT))
    return {p.index: p for p in reader.partitions([TOPIC])}


@pytest.fixture
def history(stage: Stage, places: Places) -> Path:
    """Samples of a topic whose first partitions carry most and are all led by broker 1."""
    from images import building

    images.load(lifecycle.running(places), building.archive("spark"))
    create_topics(",".join(stage.kafka.external), {TOPIC: len(ASSIGNMENT)}, assignments={TOPIC: ASSIGNMENT})
    volume = places.volumes / "history"
    folder = volume / NAMESPACE / POLICY
    cluster_id = str(stage.release.policy()["status"]["clusterId"])
    write_skewed_history(Store.open(str(folder)), uneven(stage).values(), cluster_id)
    for path in (volume, *volume.rglob("*")):
        os.chown(path, release.USER, release.USER)
    return folder


@pytest.fixture
def load() -> Mapping[str, Any]:
    """What the administrator of this node configures: the folder of the history, and small executors."""
    store = {"namespaces": [NAMESPACE], "uri": HISTORY, "persistentVolumeClaim": HISTORY_CLAIM}
    executors = {"instances": EXECUTORS, "resources": SMALL}
    profile = {"namespaces": [NAMESPACE], "type": "SparkOnKubernetes", "resources": SMALL, "executors": executors}
    return {"stores": {"plans": store}, "profiles": {"executors": profile}}


def rebalance_of(kubectl: Kubectl) -> dict[str, Any]:
    """The status of the LeaderRebalance."""
    (found,) = kubectl.get("leaderrebalances", "--namespace", NAMESPACE)
    return dict(found.get("status") or {})


def test_a_plan_made_by_executors_in_pods_is_what_one_machine_plans_and_is_applied(
    whole: Stage, kubectl: Kubectl, history: Path, load: Mapping[str, Any], tmp_path: Path
) -> None:
    waves, minimum = {"partitions": 4, "pauseSeconds": 1}, {"minimumHours": 0, "minimumMeasuredPercent": 0}
    spec = {"policy": POLICY, "store": "plans", "profile": "executors", "waves": waves, **minimum}
    stores = {**whole.values["load"]["stores"], **load["stores"]}
    values = {**whole.values, "load": {**load, "stores": stores}}
    whole.release.install({**values, "rebalances": [{"name": POLICY, "namespace": NAMESPACE, "spec": spec}]})
    whole.release.roll_out()  # the operator reads its configuration at its start
    kubectl("annotate", "lr", POLICY, "-n", NAMESPACE, "bellwether.dev/rebalance=now", "--overwrite")

    made: dict[str, set[str]] = {}
    ran: set[str] = set()

    def proposed() -> Mapping[str, Any]:
        selector = f"{RUN_LABEL},spark-role=executor"
        pods = kubectl.get("pods", "--namespace", NAMESPACE, "--selector", selector)
        for one in pods:
            application = one["metadata"]["labels"]["spark-app-selector"]
            made.setdefault(application, set()).add(one["metadata"]["name"])
            ran.update([application] if one["status"]["phase"] == "Running" else [])
        found: Mapping[str, Any] = rebalance_of(kubectl)
        assert found.get("state") != "Failed", found["message"]
        return found

    status = eventually(proposed, lambda s: s.get("state") == "Proposed", 600, "no plan is proposed")
    # On a slow node work may be done before the last executor runs.
    assert len(ran) == 1, "the loads had executors, the plan none"
    assert all(len(pods) >= EXECUTORS for pods in made.values()), made
    assert alone(history, status["run"], tmp_path) == status["digest"]

    before = uneven(whole)
    kubectl("annotate", "lr", POLICY, "-n", NAMESPACE, f"bellwether.dev/approve-plan={status['digest']}", "--overwrite")
    eventually(
        lambda: rebalance_of(kubectl)["state"],
        lambda state: state == "Done",
        240,
        "the plan is not applied",
    )
    led = dict.fromkeys((1, 2, 3), 0)
    after = eventually(
        lambda: uneven(whole),
        lambda seen: all(one.leader == one.replicas[0] for one in seen.values()),
        60,
        "some partition is not led by its first replica",
    )
    for number, partition in after.items():
        assert sorted(partition.replicas) == sorted(before[number].replicas)
        assert partition.leader is not None
        led[partition.leader] += records_a_minute(number)
    assert max(led.values()) < 1.1 * sum(led.values()) / 3
    assert read_plan(Store.open(str(history)), status["digest"]).after.max > 0
    eventually(
        lambda: kubectl.get("pods", "--namespace", NAMESPACE, "--selector", f"{RUN_LABEL},spark-role=executor"),
        lambda pods: pods == [],
        120,
        "executors are left",
    )


def alone(history: Path, run: str, folder: Path) -> str:
    """The digest of the plan that this machine alone makes of the same problem and the same samples."""
    store, name = folder / "store", file_name(NAMESPACE, POLICY, run)
    shutil.copytree(history, store)
    for made in ("plans", "loads"):
        shutil.rmtree(store / made)
    base = [sys.executable, "-m", "bellwether_load"]
    done = ""
    for arguments in (
        ["loads", "--name", name, "--master", "local[2]", "--memory", "1g"],
        ["plan", "--problem", name, "--loads", name],
    ):
        command = [*base, *arguments, "--store", str(store)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit(300), check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]
        done = ended.stdout
    return done.strip().splitlines()[-1]
