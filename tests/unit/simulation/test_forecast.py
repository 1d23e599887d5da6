"""A forecast is what the operator does then: on random clusters, with random faults, for random changes of a policy."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Demotion, Election, Mode, Policy, Promotion, PromotionWaves
from bellwether.core.signals import OverrideState, Reading, SignalType
from bellwether.simulation.forecast import Situation, forecast
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.simulated_operator import PartitionChange, SimulatedOperator
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator, restored

SECONDS = 200
RACKS = ("eu-a", "eu-b", "eu-c")
Move = tuple[float, str, tuple[int, ...], int | None]


def random_cluster(rng: random.Random) -> MemoryCluster:
    brokers = rng.randint(4, 9)
    cluster = MemoryCluster({b: RACKS[b % 3] for b in range(1, brokers + 1)})
    for topic in ("orders", "payments", "__consumer_offsets")[: rng.randint(1, 3)]:
        orders = [rng.sample(range(1, brokers + 1), rng.randint(2, 3)) for _ in range(rng.randint(4, 14))]
        cluster.create_topic(topic, assignment=orders, internal=topic.startswith("__"))
    return cluster


def random_policy(rng: random.Random) -> Policy:
    racks = rng.sample(RACKS, rng.randint(1, 3))
    steps = rng.choice([(100,), (10, 50, 100), (50, 100)])
    return Policy(
        name="main",
        mode=rng.choice([Mode.ENFORCE, Mode.ENFORCE, Mode.OBSERVE]),
        demotion=Demotion(dwell_seconds=rng.choice([0, 3, 10]), max_brokers=rng.choice([1, 2, "40%"])),
        promotion=Promotion(
            stabilization_seconds=rng.choice([0, 10, 60]),
            waves=PromotionWaves(steps=steps, pause_seconds=rng.choice([2, 20]), skip_up_to_leaders=rng.choice([0, 5])),
        ),
        placement=Placement(Preference(tuple(racks), ())) if rng.random() < 0.4 else None,
    )


def disturb(site: MemorySite, rng: random.Random) -> None:
    """One thing happens to a random broker."""
    broker = rng.choice(sorted(site.cluster.brokers))
    match rng.randrange(7):
        case 0 | 1 | 2:
            site.signals.say(broker, Reading.FAILING)
        case 3:
            site.signals.say(broker, Reading.PASSING)
        case 4:
            site.signals.say(broker, Reading.FAILING, type=SignalType.STORAGE_LATENCY, sources=[f"disk-{broker}"])
        case 5:
            until = site.clock.now() + timedelta(seconds=rng.choice([30, 120]))
            site.signals.override(broker, OverrideState.DEMOTED, "new disk", until)
        case 6 if sum(b.alive for b in site.cluster.brokers.values()) > 2:
            site.cluster.kill(broker)


def situation(site: MemorySite, operator: Operator) -> Situation:
    """What can be read from outside of the process: record, status, signals, metadata."""
    assert site.store.record is not None
    assert operator.memory is not None
    return Situation(
        site.clock.now(),
        site.cluster.snapshot(),
        restored(site.store.record, site.reported),
        site.signals.signals(),
        site.signals.overrides(),
        operator.world,
    )


def running(rng: random.Random) -> tuple[MemorySite, Operator]:
    """An operator on a random cluster that has had some faults."""
    site = MemorySite(random_cluster(rng)).well()
    operator = Operator(site, random_policy(rng))
    for _ in range(rng.randint(1, 4)):
        operator.reconciles(rng.randint(1, 12))
        disturb(site, rng)
    operator.reconciles(rng.randint(0, 3))
    if operator.memory is None:
        operator.reconciles(1)
    return site, operator


def moves(changes: list[PartitionChange] | tuple[PartitionChange, ...], start: float = 0.0) -> list[Move]:
    return [(c.at.timestamp() - start, str(c.name), c.order, c.leader) for c in changes]


def made(site: MemorySite, operator: Operator) -> list[PartitionChange]:
    """What the operator then does."""
    assert operator.memory is not None
    going_on = SimulatedOperator(site.cluster, operator.world, operator.policy, operator.memory)
    going_on.run(site.clock.monotonic() + SECONDS)
    operator.memory = going_on.memory
    return going_on.changes


@pytest.mark.parametrize("seed", range(8))
def test_a_forecast_has_exactly_the_later_moves_of_the_operator(seed: int):
    rng = random.Random(seed)
    site, operator = running(rng)
    changed = random_policy(rng)
    outcome = forecast(situation(site, operator), changed, SECONDS - 1)
    operator.policy = changed
    assert moves(outcome.changes) == moves(made(site, operator))
    assert outcome.cluster.leaders() == site.cluster.snapshot().leaders()
    assert operator.memory is not None
    assert outcome.demoted == frozenset(operator.memory.record.demoted)


def test_a_forecast_reaches_a_periodic_election():
    site = MemorySite(MemoryCluster(3))
    site.cluster.create_topic("orders", assignment=[(2, 1, 3)] * 4)
    for partition in site.cluster.partitions():
        site.cluster.foreign_reorder(partition.name, (1, 2, 3))
    site.well()
    policy = Policy(name="main", mode=Mode.ENFORCE, election=Election(interval_seconds=60))
    operator = Operator(site, policy).reconciles(1)
    assert forecast(situation(site, operator), policy, SECONDS).moved == 4
    assert len(made(site, operator)) == 4
