"""Which topics are hit, and by what."""

from __future__ import annotations

from bellwether.core.doctor.risks import partitions_at_risk
from bellwether.core.reporting.topic_impact import TopicImpact, topic_impacts
from testkit.values.builders import cluster, partition

FLOORS = {"orders": 2, "payments": 2, "events": 1}


def test_each_topic_is_counted_by_what_its_clients_notice() -> None:
    seen = cluster(
        partition("orders", index=0, replicas=(1, 2, 3), isr=(1, 2)),
        partition("orders", index=1, replicas=(1, 2, 3), isr=(1,)),
        partition("orders", index=2, replicas=(1, 2, 3), leader=None, isr=()),
        partition("orders", index=3, replicas=(2, 3, 1), leader=2),
        partition("payments", index=0, replicas=(1, 2, 3)),
        partition("events", index=0, replicas=(2, 3, 1), leader=2, isr=(2, 3)),
    )
    found = topic_impacts(seen, partitions_at_risk(seen, FLOORS), {1})
    assert found == (
        TopicImpact("orders", 4, offline=1, unhealthy_leader=2, under_min_isr=1, at_min_isr=1),
        TopicImpact("payments", 1, unhealthy_leader=1),
    )


def test_topics_are_sorted_by_what_hurts_clients_most() -> None:
    seen = cluster(
        partition("c", index=0, replicas=(2, 3, 1), leader=2, isr=(2, 3)),
        partition("b", index=0, replicas=(1, 2, 3)),
        partition("a", index=0, replicas=(2, 3, 1), leader=2, isr=(2,)),
        partition("z", index=0, leader=None, isr=()),
    )
    found = topic_impacts(seen, partitions_at_risk(seen, {"a": 2, "b": 2, "c": 2}), {1})
    assert [topic.topic for topic in found] == ["z", "b", "a", "c"]


def test_a_cluster_without_a_fault_has_no_topic_that_is_hit() -> None:
    seen = cluster(partition("a", replicas=(2, 3, 1), leader=2))
    assert topic_impacts(seen, partitions_at_risk(seen, {}), {1}) == ()
