"""Brokers on their way back: a share only grows or is rolled back, and whatever happens to them, all leaders return."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reporting.report import Report
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.scenario_driver import (
    WAVING,
    Play,
    Step,
    befalling,
    passing_time,
    perform,
    scripts,
    sickness,
    trouble,
)
from testkit.values.strategies import memory_clusters


def said(play: Play) -> list[Report]:
    """What the operator that runs now has said, turn by turn."""
    return play.operator.reports


def share_of(report: Report, broker: int) -> int | None:
    """The share of a broker on its way back; 100 for one that may lead all, None for one that is demoted."""
    if broker in report.plan.decisions.demoted:
        return None
    wave = report.plan.decisions.returning.get(broker)
    return wave.share if wave is not None else 100


@given(memory_clusters(), scripts(befalling(), trouble()))
def test_a_share_grows_or_is_rolled_back_under_any_writer(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    play.reconciles(10)
    for before, now in pairwise(play.site.store.history):
        for broker, wave in now.returning.items():
            was = before.returning.get(broker)
            assert broker not in now.demoted
            assert wave.share in (0, *WAVING.promotion.waves.steps)
            assert was is None or wave.share >= was.share or wave.share == 0
            assert was is None or wave.since == was.since or wave.share == 0


@given(memory_clusters(), scripts(befalling()))
def test_only_a_broker_that_is_well_gets_more(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    play.reconciles(10)
    for before, now in pairwise(said(play)):
        standings = {b.broker: b.verdict.state for b in now.brokers}
        judged = HealthState.HEALTHY in standings.values()
        for broker, wave in now.plan.decisions.returning.items():
            was = share_of(before, broker)
            if was is not None and was < wave.share < 100:
                assert standings[broker] is HealthState.HEALTHY or (
                    standings[broker] is HealthState.UNKNOWN and not judged
                )


@given(memory_clusters(min_brokers=4), st.lists(st.one_of(passing_time(), sickness()), max_size=10))
def test_what_a_wave_withholds_is_led_by_another_able_broker(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    for report in said(play):
        decisions, live = report.plan.decisions, {b.broker for b in report.brokers if b.registered}
        well = {b.broker for b in report.brokers if b.verdict.state not in (HealthState.SICK, HealthState.DOWN)}
        free = (live & well) - set(decisions.demoted) - set(decisions.returning)
        for partition in cluster.partitions():
            target = report.plan.targets.get(partition.key)
            wave = decisions.returning.get(target[0]) if target is not None else None
            if wave is not None and wave.withholds(partition.key):
                assert free.isdisjoint(partition.replicas)


@given(memory_clusters(), scripts(befalling(harmful=False), trouble()))
def test_invariant_3_and_6_in_the_end_every_leader_is_back_at_home(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    play.calm()
    play.everyone(Reading.PASSING)
    play.succeed()
    play.reconciles(90)
    assert play.site.store.record is not None
    assert play.site.store.record.empty
    assert all(p.leader == p.replicas[0] for p in cluster.partitions())


@given(memory_clusters(), st.integers(0, 4))
def test_invariant_8_between_two_waves_nothing_is_written(cluster: MemoryCluster, broker: int):
    play = Play(cluster)
    play.reconciles(2)
    play.say(broker, Reading.FAILING)
    play.reconciles(3)
    play.say(broker, Reading.PASSING)
    for _ in range(40):
        mutations, writes = cluster.mutations, play.site.store.writes
        play.reconciles(1)
        last = said(play)[-1]
        if last.plan.decisions.waits and last.plan.empty and not last.plan.entries and said(play)[-2].plan.empty:
            assert (cluster.mutations, play.site.store.writes) == (mutations, writes)
    mutations, writes = cluster.mutations, play.site.store.writes
    play.reconciles(10)
    assert (cluster.mutations, play.site.store.writes) == (mutations, writes)
