"""Which topics are hit: how many partitions are offline, led by an unhealthy broker, under or at min.insync.replicas.

In: a ``Cluster``, the risks of its partitions, and the brokers that should not lead. Out: ``TopicImpact``s, the worst
first. Pure. Called by ``report``. Topics without such a partition are left out; without a fault no partition is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from bellwether.core.doctor.risks import OFFLINE, Risk, RiskSummary
from bellwether.core.model.cluster import Cluster


@dataclass(frozen=True, slots=True)
class TopicImpact:
    """Numbers of partitions of one topic; one with an unhealthy leader may be at or under min.insync.replicas, too."""

    topic: str
    partitions: int
    """All partitions of the topic."""
    offline: int = 0
    unhealthy_leader: int = 0
    """Led by a broker that is Sick or Down: clients do not reach it, or it is slow."""
    under_min_isr: int = 0
    at_min_isr: int = 0


def topic_impacts(cluster: Cluster, risks: RiskSummary, unhealthy: Collection[int]) -> tuple[TopicImpact, ...]:
    """Topics with the most offline partitions, then unhealthy leaders, then under and at ``min.insync.replicas``."""
    classes: Counter[tuple[str, Risk]] = Counter()
    classes.update((d.partition.topic, d.risk) for d in risks.at_risk if d.risk is not Risk.UNDER_REPLICATED)
    led: Counter[str] = Counter()
    if any(cluster.leader_counts.get(broker) for broker in unhealthy):
        led.update(p.topic for p in cluster.partitions if p.leader in unhealthy)
    found = [
        TopicImpact(
            topic,
            cluster.topic_sizes[topic],
            sum(classes[topic, risk] for risk in OFFLINE),
            led[topic],
            classes[topic, Risk.UNDER_MIN_ISR],
            classes[topic, Risk.AT_MIN_ISR],
        )
        for topic in {*led, *(topic for topic, _ in classes)}
    ]
    return tuple(
        sorted(found, key=lambda t: (-t.offline, -t.unhealthy_leader, -t.under_min_isr, -t.at_min_isr, t.topic))
    )
