"""Demoted log directories: in any order of events only what lies in them moves, and all of it returns."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.undo_record import Cause
from bellwether.core.settings.policy import Demotion
from bellwether.core.signals import Reading, SignalType
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

PATHS = ("/data-0", "/data-1")
BROKERS = 5
EVENTS = st.sampled_from(["slow", "slow", "fast", "fast", "silent", "heard", "freeze", "thaw", "take over"])
SCRIPTS = st.lists(st.tuples(EVENTS, st.integers(1, BROKERS), st.sampled_from(PATHS), st.integers(1, 15)), max_size=12)


class Simulation:
    """Five brokers with two log directories each, and the operator of the moment."""

    def __init__(self, cap: int, layouts: list[list[bool]]) -> None:
        self.site = site(BROKERS, {"orders": 10})
        self.policy = replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=cap))
        names = [p.name for p in self.site.cluster.partitions()]
        for broker, layout in zip(self.site.cluster.brokers, layouts, strict=True):
            second = {name for name, there in zip(names, layout, strict=True) if there}
            self.site.cluster.lay_out(broker, {PATHS[0]: set(names) - second, PATHS[1]: second})
            self.site.signals.say(broker, Reading.PASSING)
            for path in PATHS:
                self.disk(broker, path, Reading.PASSING)
        self.home = self.orders()
        self.operators = 1
        self.operator = Operator(self.site, self.policy, identity="operator-1")
        self.operator.reconciles(1)

    def disk(self, broker: int, path: str, reading: Reading) -> None:
        source = f"disk-{broker}{path[-2:]}"
        kind = SignalType.STORAGE_LATENCY
        self.site.signals.say(broker, reading, type=kind, sources=[source], directory=path)

    def befalls(self, event: str, broker: int, path: str) -> None:
        match event:
            case "slow" | "fast":
                self.disk(broker, path, Reading.FAILING if event == "slow" else Reading.PASSING)
            case "silent":
                self.site.signals.silence(f"disk-{broker}{path[-2:]}")
            case "heard":
                self.site.signals.resume(f"disk-{broker}{path[-2:]}")
            case "freeze":
                self.site.cluster.freeze(broker)
            case "thaw":
                self.site.cluster.thaw(broker)
            case "take over":
                self.operators += 1
                self.operator.memory = None  # what only the process remembered, as where replicas lie, is gone

    def orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {p.name: p.replicas for p in self.site.cluster.partitions()}

    def check(self) -> None:
        """What moved lies in a demoted directory, or on a broker that is demoted as a whole, and within the cap."""
        memory = self.operator.memory
        if memory is None:
            return
        record, cluster = memory.record, self.site.cluster
        for partition in cluster.partitions():
            off = [b for b in partition.replicas if b in record.demoted]
            off += [d.broker for d in record.log_dirs if partition.name in cluster.log_dirs(d.broker)[d.path]]
            home = self.home[partition.name]
            assert sorted(partition.replicas) == sorted(home)
            if not off:
                assert partition.replicas == home
        assert not {d.broker for d in record.log_dirs} & set(record.demoted)
        assert all(one.cause is Cause.SIGNALS for one in record.demoted.values())
        assert len(record.demoted) <= self.policy.demotion.cap(BROKERS)


LAYOUTS = st.lists(st.lists(st.booleans(), min_size=10, max_size=10), min_size=BROKERS, max_size=BROKERS)


@given(st.integers(1, 2), LAYOUTS, SCRIPTS)
def test_only_what_lies_in_a_demoted_directory_moves_and_all_of_it_returns(
    cap: int, layouts: list[list[bool]], script: list[tuple[str, int, str, int]]
):
    simulation = Simulation(cap, layouts)
    for event, broker, path, seconds in script:
        simulation.befalls(event, broker, path)
        for _ in range(seconds):
            simulation.operator.reconciles(1)
            simulation.check()
    for broker in simulation.site.cluster.brokers:
        simulation.site.cluster.thaw(broker)
        for path in PATHS:
            simulation.befalls("heard", broker, path)
            simulation.disk(broker, path, Reading.PASSING)
    simulation.operator.reconciles(150)
    assert simulation.orders() == simulation.home
    assert simulation.operator.memory is not None
    assert simulation.operator.memory.record.empty


@given(LAYOUTS, st.sets(st.integers(1, BROKERS), max_size=2), st.sampled_from(PATHS))
def test_without_an_answer_of_the_broker_no_directory_moves_anything(
    layouts: list[list[bool]], slow: set[int], path: str
):
    simulation = Simulation(2, layouts)
    simulation.operator = Operator(simulation.site, simulation.policy, identity="operator-1")
    simulation.operator.world = replace(simulation.operator.world, log_dirs=None)
    for broker in slow:
        simulation.disk(broker, path, Reading.FAILING)
    simulation.operator.reconciles(20)
    assert simulation.orders() == simulation.home
