"""Which topics are hit, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.doctor.risks import partitions_at_risk
from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.log_dirs import Placement
from bellwether.core.reasons import Reason
from bellwether.core.reporting.topic_impact import TopicImpact, topic_impacts
from testkit.values.builders import cluster, context, partition, snapshot, verdict, verdicts

FLOORS = {"orders": 2, "payments": 2, "events": 1}


def impacts(
    seen: Cluster,
    floors: Mapping[str, int],
    first: Verdict | None = None,
    log_dirs: Mapping[int, Placement] | None = None,
) -> tuple[TopicImpact, ...]:
    """With ``first`` on broker 1, which is Sick unless given; all others are Healthy."""
    judged = {**verdicts(seen), 1: first or verdict(1, HealthState.SICK)}
    facts = replace(snapshot(seen), log_dirs=log_dirs or {})
    return topic_impacts(context(facts, judged), partitions_at_risk(seen, floors))


def test_each_topic_is_counted_by_what_its_clients_notice() -> None:
    seen = cluster(
        partition("orders", index=0, replicas=(1, 2, 3), isr=(1, 2)),
        partition("orders", index=1, replicas=(1, 2, 3), isr=(1,)),
        partition("orders", index=2, replicas=(1, 2, 3), leader=None, isr=()),
        partition("orders", index=3, replicas=(2, 3, 1), leader=2),
        partition("payments", index=0, replicas=(1, 2, 3)),
        partition("events", index=0, replicas=(2, 3, 1), leader=2, isr=(2, 3)),
    )
    found = impacts(seen, FLOORS)
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
    found = impacts(seen, {"a": 2, "b": 2, "c": 2})
    assert [topic.topic for topic in found] == ["z", "b", "a", "c"]


def test_cluster_without_fault_has_no_topic_that_is_hit() -> None:
    seen = cluster(partition("a", replicas=(2, 3, 1), leader=2))
    assert impacts(seen, {}) == ()


@pytest.mark.parametrize(
    ("reason", "hit"),
    [
        (Reason.HARM_BELOW_COST, True),
        (Reason.SYSTEMIC_CAUSE, True),
        (Reason.VANTAGE_CONFLICT, True),
        (Reason.UNREACHABLE, True),
        (Reason.VANTAGES_DISAGREE, False),
        (Reason.RESTARTING, False),
    ],
)
def test_a_suspect_leader_counts_where_its_clients_suffer(reason: Reason, hit: bool) -> None:
    seen = cluster(partition("a", replicas=(1, 2, 3)))
    first = verdict(1, HealthState.SUSPECT, reason)
    assert impacts(seen, {}, first) == ((TopicImpact("a", 1, unhealthy_leader=1),) if hit else ())


def test_only_partitions_led_in_slow_log_directory_count() -> None:
    seen = cluster(
        partition("slow", index=0, replicas=(1, 2, 3)),
        partition("slow", index=1, replicas=(2, 1, 3), leader=2),
        partition("fast", index=0, replicas=(1, 2, 3)),
    )
    first = replace(verdict(1, HealthState.SUSPECT, Reason.LOG_DIR_SLOW), log_dirs=("/data-1",))
    names = frozenset(TopicPartition("slow", index) for index in (0, 1))
    placement = {"/data-0": frozenset({TopicPartition("fast", 0)}), "/data-1": names}
    assert impacts(seen, {}, first, {1: placement}) == (TopicImpact("slow", 2, unhealthy_leader=1),)


def test_what_lies_in_a_slow_log_directory_is_unknown_until_the_broker_has_said_it() -> None:
    seen = cluster(partition("a", replicas=(1, 2, 3)))
    first = replace(verdict(1, HealthState.SUSPECT, Reason.LOG_DIR_SLOW), log_dirs=("/data-1",))
    assert impacts(seen, {}, first) == ()
