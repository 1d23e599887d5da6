"""Rounds of questions: who is asked for what, when the map is read again, and what silence means for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.probes.replication.lag_round import MAP_SECONDS, LagRounds
from bellwether.simulation.memory_world import ManualClock
from testkit.messages import assert_wording

SETTINGS = ReplicationLag()


def partition(index: int, leader: int, **changes: Any) -> Partition:
    replicas = changes.pop("replicas", (1, 2, 3))
    return Partition(
        "t", "T", index, replicas, changes.pop("isr", replicas), leader, changes.pop("epoch", 4), **changes
    )


def cluster(*partitions: Partition, brokers: int = 3) -> Cluster:
    known = {b: Broker(b, host="h", port=b) for b in range(1, brokers + 1)}
    return Cluster("c", known, partitions or (partition(0, 1), partition(1, 2), partition(2, 3)))


@dataclass
class World:
    """A cluster that writes a hundred records a second, and whose followers follow; but for ``stuck`` ones."""

    clock: ManualClock = field(default_factory=ManualClock)
    cluster: Cluster = field(default_factory=cluster)
    trouble: Exception | None = None
    silent: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    broken: dict[int, Exception] = field(default_factory=dict)
    stuck: dict[int, int] = field(default_factory=dict)
    late: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    reads: int = 0
    reading_takes: float = 0.0
    behind_ours: float = 0.0
    """The answers' clock, which may not have counted the time that the machine slept."""
    asked: list[tuple[str, dict[TopicPartition, int], float, float]] = field(default_factory=list)

    def read(self) -> Cluster:
        self.reads += 1
        self.clock.advance(self.reading_takes)
        if self.trouble is not None:
            raise self.trouble
        return self.cluster

    def ask(
        self, address: str, replicas: Mapping[TopicPartition, int], timeout_seconds: float, longest_seconds: float
    ) -> Any:
        self.asked.append((address, dict(replicas), timeout_seconds, longest_seconds))
        broker = int(address.partition(":")[2])
        if broker in self.broken:
            raise self.broken[broker]
        now = self.clock.monotonic() - self.behind_ours
        if broker in self.silent:
            return BrokerLogEnds(problem=f"{address}: connected, but no answer in time")
        if broker in self.moved:
            return BrokerLogEnds({name: int(100 * now) for name in list(replicas)[1:]}, now, now, moved=1)
        end = int(100 * now)
        ends = {n: min(end, self.stuck.get(broker, end)) if e < 0 else end for n, e in replicas.items()}
        return BrokerLogEnds({n: self.late.get((n, broker), end) for n, end in ends.items()}, now, now)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def lag_rounds(world: World) -> Iterator[LagRounds]:
    made = LagRounds(world, world, world.clock)
    yield made
    made.close()


def rounds(lag_rounds: LagRounds, world: World, number: int) -> Any:
    for _ in range(number):
        world.clock.advance(SETTINGS.period_seconds)
        found = lag_rounds.round(SETTINGS)
    return found


def test_every_broker_is_asked_with_epoch_it_leads_in(world: World, lag_rounds: LagRounds) -> None:
    world.cluster = cluster(
        partition(0, 1),
        partition(1, 2, replicas=(2, 3)),
        partition(2, 3, replicas=(3,)),
        replace(partition(3, 1), leader=None),
    )
    rounds(lag_rounds, world, 1)
    assert sorted(world.asked) == [
        ("h:1", {("t", 0): 4}, SETTINGS.timeout_seconds, SETTINGS.timeout_seconds + SETTINGS.period_seconds),
        ("h:2", {("t", 0): -1, ("t", 1): 4}, 2, 7),
        ("h:3", {("t", 0): -1, ("t", 1): -1}, 2, 7),
    ]  # a single replica, and a partition without a leader, tell nothing


def test_a_cluster_that_follows_has_no_lag(world: World, lag_rounds: LagRounds) -> None:
    found = rounds(lag_rounds, world, 10)
    assert [(measurement.followed, measurement.lagging, measurement.problem) for measurement in found.values()] == [
        (2, 0, "")
    ] * 3


def test_only_the_stuck_follower_is_blamed_with_its_lag(world: World, lag_rounds: LagRounds) -> None:
    rounds(lag_rounds, world, 3)
    world.stuck[3] = int(100 * world.clock.monotonic())
    found = rounds(lag_rounds, world, 8)
    assert [broker for broker, measurement in found.items() if measurement.blamed] == [3]
    assert found[3].worst_seconds == pytest.approx(7 * SETTINGS.period_seconds)
    assert (found[3].lagging, found[3].in_isr, found[3].behind) == (2, 2, (1, 2))


def test_lag_behind_one_of_two_leaders_is_not_blamed(world: World, lag_rounds: LagRounds) -> None:
    world.behind_ours = 86400.0
    world.clock.advance(100_000)
    rounds(lag_rounds, world, 3)
    world.late = {(TopicPartition("t", 0), 3): int(100 * (world.clock.monotonic() - world.behind_ours))}
    measurement = rounds(lag_rounds, world, 8)[3]
    assert (measurement.lagging, measurement.behind, measurement.blamed) == (1, (1,), False)


def test_silent_broker_is_unmeasured_and_others_are_measured(world: World, lag_rounds: LagRounds) -> None:
    world.silent = {2}
    found = rounds(lag_rounds, world, 5)
    assert_wording(found[2].problem)
    assert [(found[b].followed, found[b].lagging, found[b].problem) for b in (1, 3)] == [(1, 0, ""), (1, 0, "")]


def test_a_broker_all_of_whose_leaders_are_silent_is_unmeasured(world: World, lag_rounds: LagRounds) -> None:
    world.cluster, world.silent = cluster(partition(0, 1), partition(1, 1)), {1}
    found = rounds(lag_rounds, world, 1)
    assert found[2].problem == found[3].problem == "none of the leaders that it follows has answered"


def test_a_local_error_is_no_evidence_about_any_broker(world: World, lag_rounds: LagRounds) -> None:
    world.broken = {b: Terminal("ca_file x is not a readable PEM file") for b in (1, 2, 3)}
    found = rounds(lag_rounds, world, 3)
    assert_wording({measurement.problem for measurement in found.values()})


def test_fenced_and_unregistered_brokers_are_not_asked_and_are_unmeasured(world: World, lag_rounds: LagRounds) -> None:
    known = cluster()
    world.cluster = Cluster("c", {1: known.brokers[1], 2: replace(known.brokers[2], fenced=True)}, known.partitions)
    found = rounds(lag_rounds, world, 1)
    assert [address for address, *_ in world.asked] == ["h:1"]
    assert (found[2].problem, found[3].problem) == ("it is fenced", "it is not registered")


def test_a_broker_that_holds_nothing_is_measured(world: World, lag_rounds: LagRounds) -> None:
    world.cluster = cluster(brokers=4)
    assert rounds(lag_rounds, world, 1)[4].problem == ""


class TestTheMap:
    def test_a_settled_cluster_is_read_again_only_now_and_then(self, world: World, lag_rounds: LagRounds) -> None:
        rounds(lag_rounds, world, int(4 * MAP_SECONDS / SETTINGS.period_seconds))
        assert world.reads == 4

    @pytest.mark.parametrize("what", ["silent", "moved", "lagging", "out of the ISR"])
    def test_during_a_problem_the_map_is_read_each_round(self, what: str, world: World, lag_rounds: LagRounds) -> None:
        world.silent = {3} if what == "silent" else set()
        world.moved = {3} if what == "moved" else set()
        world.stuck = {3: 0} if what == "lagging" else {}
        if what == "out of the ISR":
            world.cluster = cluster(partition(0, 1, isr=(1, 2)))
        rounds(lag_rounds, world, 5)
        before = world.reads
        rounds(lag_rounds, world, 5)
        assert world.reads == before + 5

    @pytest.mark.parametrize("stuck", [{}, {3: 0}])
    def test_a_slow_map_is_read_rarely_even_during_a_problem(
        self, stuck: dict[int, int], world: World, lag_rounds: LagRounds
    ) -> None:
        world.reading_takes, world.stuck = 10.0, stuck
        before = world.clock.monotonic()
        rounds(lag_rounds, world, 100)
        assert 1 < world.reads <= 1 + (world.clock.monotonic() - before) / (6 * world.reading_takes)

    def test_without_any_map_nothing_can_be_measured(self, world: World, lag_rounds: LagRounds) -> None:
        world.trouble = Transient("no broker answered")
        with pytest.raises(Transient):
            lag_rounds.round(SETTINGS)

    def test_a_map_that_cannot_be_read_again_goes_on_serving(self, world: World, lag_rounds: LagRounds) -> None:
        rounds(lag_rounds, world, 1)
        world.trouble = Transient("no broker answered")
        found = rounds(lag_rounds, world, 20)
        assert world.reads > 1
        assert [measurement.followed for measurement in found.values()] == [2, 2, 2]


def test_progress_is_posted_during_a_round(world: World, lag_rounds: LagRounds) -> None:
    posted: list[bool] = []
    lag_rounds.round(SETTINGS, progress=lambda: posted.append(True))
    assert len(posted) == 1 + 3
