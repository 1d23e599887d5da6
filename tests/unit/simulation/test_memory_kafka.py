"""What only the fake's views and settings do; what they share with real Kafka is in the contract suite."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import (
    MAX_RECORDS_PER_USER_OPERATION,
    MemoryConfigs,
    MemoryMover,
    MemoryReader,
    MemoryRoute,
)
from testkit.values.builders import name
from testkit.values.strategies import Act, deeds, memory_clusters

MIN_ISR = "min.insync.replicas"


@pytest.fixture
def kafka() -> MemoryCluster:
    made = MemoryCluster(3)
    made.create_topic("orders", 3, min_isr=2)
    return made


def test_a_request_after_a_time_out_goes_to_another_broker(kafka):
    kafka.freeze(1)
    reader = MemoryReader(kafka)
    with pytest.raises(Transient, match="broker 1 did not answer"):
        reader.read()
    assert len(reader.read().partitions) == 3


def test_an_avoided_broker_is_asked_after_all_others(kafka):
    route = MemoryRoute(kafka)
    reader, mover = MemoryReader(kafka, route), MemoryMover(kafka, route=route)
    reader.avoid([1])
    mover.elect([name()])
    kafka.kill(2)
    kafka.kill(3)
    mover.elect([name()])
    assert [s.through for s in mover.sent] == [2, 1]


def test_a_cluster_that_is_all_down_answers_nothing(kafka):
    for broker in (1, 2, 3):
        kafka.kill(broker)
    with pytest.raises(Transient, match="all are down"):
        MemoryReader(kafka).read()


def test_without_a_controller_quorum_metadata_is_read_and_nothing_moves(kafka):
    kafka.quorum = False
    assert MemoryReader(kafka).read().partitions
    with pytest.raises(Transient, match="quorum"):
        MemoryMover(kafka).elect([name()])


def test_an_election_above_the_record_limit_fails_whole():
    made = MemoryCluster(2)
    count = MAX_RECORDS_PER_USER_OPERATION + 1
    made.create_topic("wide", count, assignment=[(1, 2)] * count)
    for p in made.partitions():
        made.foreign_reorder(p.name, (2, 1))
    mover = MemoryMover(made)
    outcomes = mover.elect([p.name for p in made.partitions()])
    assert {o.error for o in outcomes.values()} == {"POLICY_VIOLATION"}
    assert made.snapshot().leaders()[1] == count
    outcomes = mover.elect([p.name for p in made.partitions()][:-1])
    assert {o.error for o in outcomes.values()} == {"NONE"}


def test_a_cancel_that_would_need_an_unclean_election_is_refused():
    made = MemoryCluster(5)
    made.create_topic("orders", assignment=[(1,)])
    made.kill(5)
    made.foreign_reassign(name(), (4, 5))
    made.join_isr(name(), 4)
    made.kill(1)
    assert made.partition("orders").isr == (4,)
    assert MemoryMover(made).cancel([name()])[name()].error == "INVALID_REPLICA_ASSIGNMENT"


@given(memory_clusters(), st.lists(deeds(), max_size=8), st.data())
def test_a_reorder_changes_neither_set_nor_leader_nor_epoch(
    made: MemoryCluster, script: list[tuple[str, Act]], data: st.DataObject
):
    for _, act in script:
        act(made)
    resting = [p for p in made.partitions() if not p.reassigning]
    mover = MemoryMover(made)
    wanted = {p.name: tuple(data.draw(st.permutations(p.replicas))) for p in resting}
    try:
        outcomes = mover.reorder([Reorder(n, order) for n, order in wanted.items()])
    except Transient:
        return
    for p in resting:
        now = made.partition(*p.name)
        assert outcomes[p.name].ok
        assert now.replicas == wanted[p.name]
        assert (set(now.replicas), now.leader, now.leader_epoch) == (set(p.replicas), p.leader, p.leader_epoch)
        assert not now.reassigning


@given(memory_clusters(), st.lists(deeds(), max_size=8))
def test_an_election_moves_only_to_the_first_replica(made: MemoryCluster, script: list[tuple[str, Act]]):
    for _, act in script:
        act(made)
    before = {p.name: p for p in made.partitions()}
    try:
        outcomes = MemoryMover(made).elect(list(before))
    except Transient:
        return
    for p in made.partitions():
        first = before[p.name].replicas[0]
        match outcomes[p.name].error:
            case "NONE":
                assert p.leader == first != before[p.name].leader
            case "ELECTION_NOT_NEEDED":
                assert p.leader == first
            case error:
                assert error == "PREFERRED_LEADER_NOT_AVAILABLE"
                assert p == before[p.name]


def test_a_broker_that_is_dead_or_frozen_reports_no_settings(kafka):
    kafka.kill(1)
    kafka.freeze(2)
    assert set(MemoryConfigs(kafka).broker_configs([1, 2, 3], [MIN_ISR])) == {3}


def test_settings_of_a_broker_can_be_given(kafka):
    kafka.own_settings[2]["auto.leader.rebalance.enable"] = "false"
    settings = MemoryConfigs(kafka).broker_configs([1, 2], ["auto.leader.rebalance.enable"])
    assert {b: s["auto.leader.rebalance.enable"] for b, s in settings.items()} == {1: "true", 2: "false"}


def test_a_frozen_broker_lets_one_read_of_topics_time_out(kafka):
    kafka.freeze(1)
    configs = MemoryConfigs(kafka)
    with pytest.raises(Transient, match="broker 1"):
        configs.topic_configs(["orders"], [MIN_ISR])
    assert configs.topic_configs(["orders"], [MIN_ISR]) == {"orders": {MIN_ISR: "2"}}
    assert configs.asked == 2


def test_settings_of_a_deleted_topic_are_gone(kafka):
    kafka.settings["orders"]["unclean.leader.election.enable"] = "true"
    kafka.recreate_topic("orders")
    settings = MemoryConfigs(kafka).topic_configs(["orders"], ["unclean.leader.election.enable", MIN_ISR])
    assert settings == {"orders": {"unclean.leader.election.enable": "false", MIN_ISR: "2"}}


def test_a_topic_that_there_is_not_cannot_be_configured(kafka):
    with pytest.raises(KeyError, match="payments"):
        kafka.settings["payments"][MIN_ISR] = "2"
