"""Who else moves replicas, and by what that is recognised."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bellwether.core.execution.reassignments import (
    CRUISE_CONTROL_TOPICS,
    MAX_TOPICS_QUERIED,
    bulk_reassignment,
    foreign_reassignments,
    topics_to_query,
)
from bellwether.core.model.cluster import Partition
from bellwether.core.model.undo_record import EntryState
from bellwether.core.reasons import Reason
from testkit.values.builders import cluster, entry, partition, record

MOVING = partition("orders", replicas=[1, 2, 3, 4], adding=[4], removing=[1])
MARK = "leader.replication.throttled.replicas"


def noted(*more: Partition, settings: Mapping[str, Mapping[str, str]] | None = None) -> tuple[Reason, str] | None:
    seen = cluster(MOVING, *more, brokers=4)
    found = bulk_reassignment(foreign_reassignments(seen, record()), seen, settings or {})
    return (found.reason, found.message) if found is not None else None


def test_a_cluster_in_which_no_replica_moves_has_none():
    seen = cluster(partition())
    assert bulk_reassignment(foreign_reassignments(seen, record()), seen, {}) is None


def test_single_move_by_hand_holds_nothing_but_its_own_partition():
    assert noted() is None


@pytest.mark.parametrize("topic", sorted(CRUISE_CONTROL_TOPICS))
def test_cruise_control_is_known_by_its_topics(topic: str):
    found = noted(partition(topic))
    assert found is not None
    assert found[0] is Reason.EXTERNAL_OPERATION
    assert "Cruise Control's topics exist" in found[1]


def test_throttled_replicas_are_the_mark_of_a_move_in_bulk():
    found = noted(settings={"orders": {MARK: "0:1,0:2"}})
    assert found is not None
    assert "replication is throttled" in found[1]


@pytest.mark.parametrize("settings", [{}, {"orders": {}}, {"orders": {MARK: ""}}], ids=["unknown", "none", "empty"])
def test_without_a_mark_there_is_no_throttle(settings: Mapping[str, Mapping[str, str]]):
    assert noted(settings=settings) is None


def test_an_interrupted_reorder_of_ours_is_not_foreign():
    key = MOVING.key
    undo = record({key: entry(baseline=[1, 2, 3], written=[2, 3, 4], state=EntryState.INTENDED)})
    assert foreign_reassignments(cluster(MOVING, brokers=4), undo) == ()
    standing = record({key: entry(baseline=[1, 2, 3], written=[2, 3, 4], state=EntryState.DISPLACED)})
    assert foreign_reassignments(cluster(MOVING, brokers=4), standing) == (MOVING,)


def test_at_most_so_many_topics_are_asked_about():
    many = tuple(partition(f"t{i:03}", replicas=[1, 2, 3], adding=[3]) for i in range(200))
    assert len(topics_to_query(many)) == MAX_TOPICS_QUERIED


def test_what_is_said_does_not_change_while_they_go_on():
    first, second = (partition(t, replicas=[1, 2, 3], adding=[3]) for t in ("a", "b"))
    metrics = partition("__CruiseControlMetrics")
    said = [bulk_reassignment(moving, cluster(*moving, metrics), {}) for moving in ((first, second), (second,))]
    assert said[0] == said[1]
