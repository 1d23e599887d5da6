"""Sets the stage on a node: Bellwether by its chart, then brokers with its sidecars, all judged Healthy.

In: a node with Bellwether's image. Out: what to break, and what to look at. Called by the tests on a node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from node import images, lifecycle
from node.kubectl import Kubectl, eventually
from node.places import Places
from nodeparts import kafka_image, kafka_pods, release
from nodeparts.kafka_on_node import KafkaOnNode
from nodeparts.release import Release

HEALTHY_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What runs on the node for the main job."""

    release: Release
    values: Mapping[str, Any]
    """What the release was installed with."""
    kafka: KafkaOnNode
    first_verdict_seconds: float
    """From the moment that clients could use the brokers until each was judged Healthy."""

    def all_well(self) -> None:
        """Wait until every broker is judged Healthy and nothing is out of place."""
        healthy = dict.fromkeys(kafka_pods.BROKERS, "Healthy")
        eventually(self.release.verdicts, lambda seen: seen == healthy, HEALTHY_SECONDS, "not all brokers are Healthy")
        eventually(self.release.displaced, lambda seen: seen == 0, HEALTHY_SECONDS, "replica orders are not back")


def set_up(where: Places, kubectl: Kubectl, folder: Path) -> Stage:
    """Install everything and wait; ``folder`` is for Helm's own files."""
    images.load(lifecycle.running(where), kafka_image.archive())
    kafka = KafkaOnNode(kubectl, where)
    bellwether = Release(kubectl, folder)
    values = release.values(kafka.cluster.internal, kafka_pods.ACCOUNT, kafka.cluster.namespace)
    kubectl.apply(kafka_pods.namespace(kafka.cluster))
    bellwether.prepare(where.volumes / "history")
    # A policy can only come once its definition is there: Helm leaves it out before.
    bellwether.install({**values, "policies": [], "probers": [], "sampler": {"enabled": False}})
    eventually(lambda: kubectl.get("leadershippolicies", "--all-namespaces"), lambda _: True, 60, "it is not served")
    bellwether.install(values)
    kafka.start(bellwether.sidecars())
    kafka.fill(topics=3, partitions=12)
    kafka.settle()
    began = time.monotonic()
    stage = Stage(bellwether, values, kafka, 0.0)
    stage.all_well()
    took = time.monotonic() - began
    bellwether.roll_out()
    return replace(stage, first_verdict_seconds=took)
