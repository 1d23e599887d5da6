from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.waves.ineligible_brokers import ineligible_brokers
from bellwether_load.plan.documents import PROBLEM
from bellwether_load.plan.partition_rows import read_rows
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, Problem
from bellwether_load.plan.problem_builder import build_problem
from testkit.loads.small_planner import loads_of, partition_table
from testkit.values.builders import cluster, entry, partition, record, verdicts
from testkit.values.strategies import clusters, records

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def posed(
    seen: Cluster,
    *,
    undo: UndoRecord | None = None,
    shut: dict[int, str] | None = None,
    capacities: dict[int, int] | None = None,
    excluded: tuple[str, ...] = (),
    **more: Any,
) -> Problem:
    settings = Rebalance(capacities=capacities or {}, excluded_topics=excluded)
    return build_problem(seen, undo or record(), shut or {}, settings, policy="kafka/main", made_at=NOON, **more)


def held(problem: Problem) -> dict[str, str]:
    return {f"{p.topic}-{p.partition}": p.held for p in problem.partitions}


def test_the_problem_of_a_settled_cluster_is_its_current_state() -> None:
    seen = cluster(partition("b", 1, (2, 1)), partition("b", 0, (1, 2)), partition("a", 0, (3,)), racks={1: "x"})
    made = posed(seen, capacities={2: 200})
    assert [(p.topic, p.partition, p.replicas, p.leader, p.held) for p in made.partitions] == [
        ("a", 0, (3,), 3, ""),
        ("b", 0, (1, 2), 1, ""),
        ("b", 1, (2, 1), 2, ""),
    ]
    assert made.header.brokers == (BrokerInput(1, "x"), BrokerInput(2, None, 200, request_capacity=200), BrokerInput(3))
    assert (made.header.cluster_id, made.header.policy, made.header.made_at) == ("memory-cluster", "kafka/main", NOON)


def test_what_must_stay_is_held_with_its_reason() -> None:
    key = PartitionKey("id-of-displaced", 0)
    seen = cluster(
        partition("displaced", 0, (2, 1)),
        partition("growing", 0, (1, 2, 3), adding=(3,)),
        partition("__consumer_offsets", 0, internal=True),
        partition("named", 0, (1, 9)),
        partition("left-alone", 0),
        partition("of-the-sick", 0, (3, 1)),
        partition("unseen", 0, (8, 1), leader_unknown=True),
        partition("free", 0),
        removed=[9],
    )
    undo = record({key: entry("displaced", (1, 2), (2, 1))})
    found = held(posed(seen, undo=undo, shut={3: "Sick"}, excluded=("left-*",)))
    assert found == {
        "displaced-0": "Displaced",
        "growing-0": "Reassigning",
        "__consumer_offsets-0": "Internal",
        "named-0": "RemovedBroker",
        "left-alone-0": "Excluded",
        "of-the-sick-0": "Sick",
        "unseen-0": "LeaderUnknown",
        "free-0": "",
    }


def test_a_tombstone_holds_nothing() -> None:
    undo = record({PartitionKey("id-of-orders", 0): entry(state=EntryState.RESTORED)})
    assert held(posed(cluster(partition()), undo=undo)) == {"orders-0": ""}


def test_internal_topics_move_where_that_is_asked_for() -> None:
    seen = cluster(partition("__consumer_offsets", 0, internal=True))
    assert held(posed(seen, internal=True)) == {"__consumer_offsets-0": ""}


def test_a_broker_that_only_a_replica_list_names_is_listed_and_closed() -> None:
    seen = cluster(partition(replicas=(1, 9), isr=(1,)))
    made = posed(seen, shut=ineligible_brokers(seen, record(), {}))
    assert made.header.brokers[-1] == BrokerInput(9, None, 100, False, "NotRegistered")


def test_a_leader_that_is_no_replica_counts_as_none() -> None:
    assert posed(cluster(partition(replicas=(1, 2), leader=3))).partitions[0].leader == NO_BROKER


@given(clusters(), records(), st.data())
def test_whatever_is_seen_makes_a_problem_that_makes_sense(
    seen: Cluster, undo: UndoRecord, data: st.DataObject
) -> None:
    standings = {
        w: [b] for w in ("sick", "down", "unknown") for b in data.draw(st.sets(st.sampled_from(sorted(seen.named))))
    }
    shut = ineligible_brokers(seen, undo, verdicts(seen, **standings))
    made = posed(seen, undo=undo, shut=shut)
    assert PROBLEM.from_json(PROBLEM.to_json(made.header)) == made.header
    assert len(read_rows(made.header, partition_table(made.partitions), loads_of([]))) == len(made.partitions)
    assert list(made.partitions) == sorted(made.partitions)
    # A rebalance takes nothing from a broker that is not well, and gives it nothing.
    assert all(p.held for p in made.partitions if p.leader in shut)
    assert {b.id for b in made.header.brokers if not b.open} == set(shut)
