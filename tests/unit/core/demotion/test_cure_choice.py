"""Which cure a broker with slow writes gets: a table of what was measured of it, and what is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.demotion.cure_choice import choose_cures
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.harm import FENCED_WITHIN_SECONDS, LEADING_LOST_SECONDS, STALLED_SECONDS
from bellwether.core.settings.policy import Demotion, Mode, Policy, ProducerAcks
from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.simulation.memory_world import START
from testkit.messages import assert_wording
from testkit.values.builders import cluster, partition
from testkit.values.quarantine_inputs import CONTROLLERS, agent, disk, held_in, opted_in, ordered, scene

LEADING = cluster(partition(replicas=(1, 2, 3)), partition(index=1, replicas=(2, 3, 1)))
PLAIN = Policy(name="main", mode=Mode.ENFORCE, demotion=Demotion(dwell_seconds=0, max_brokers=1))
ONE = frozenset({1})
TRAILS = FaultTolerance({"orders": 2}, CONTROLLERS, trailing=ONE)
KEEPS_UP = FaultTolerance({"orders": 2}, CONTROLLERS, keeping_up=ONE)
UNKNOWN = FaultTolerance({"orders": 2}, CONTROLLERS)
STALLED = replace(disk(), latency_seconds=STALLED_SECONDS)
LOSING = replace(disk(), latency_seconds=LEADING_LOST_SECONDS)
GUARDED = replace(opted_in(), demotion=PLAIN.demotion)
ACKS_ONE = replace(PLAIN.demotion, producer_acks=ProducerAcks.ONE)


def decided(
    margins: FaultTolerance | None,
    *signals: Signal,
    policy: Policy = PLAIN,
    seen: Cluster = LEADING,
    reason: Reason = Reason.STORAGE_SLOW,
) -> Decisions:
    """Broker 1 is Sick, its writes are slow; what is decided."""
    judged = held_in(seen)
    judged[1] = replace(judged[1], reason=reason, slow=Reason.STORAGE_SLOW)
    return decide(Context(scene(seen, *(signals or (disk(),)), margins=margins), judged, policy))


def cure(margins: FaultTolerance | None, *signals: Signal, **more: object) -> str:
    """The cure, or the reason why there is none."""
    found = decided(margins, *signals, **more)  # type: ignore[arg-type]
    if found.to_hold:
        assert not found.demoted, "one cure"
        return "hold"
    return "demotion" if 1 in found.demoted else str(found.held[0].reason)


@pytest.mark.parametrize(
    ("margins", "words", "without", "with_agent"),
    [
        pytest.param(KEEPS_UP, [disk()], "demotion", "demotion", id="it keeps up as a follower"),
        pytest.param(TRAILS, [disk()], "NoRelief", "hold", id="it does not keep up"),
        pytest.param(TRAILS, [LOSING], "demotion", "hold", id="what it leads is lost for acks=all as it is"),
        pytest.param(UNKNOWN, [disk()], "NoRelief", "NoRelief", id="whether it does is unknown"),
        pytest.param(UNKNOWN, [STALLED], "NoRelief", "hold", id="an append does not end"),
        pytest.param(KEEPS_UP, [STALLED], "NoRelief", "hold", id="an append does not end, and nothing is written"),
        pytest.param(None, [disk()], "demotion", "demotion", id="nothing can be measured here"),
    ],
)
def test_slow_writes_get_the_cure_that_ends_the_loss(
    margins: FaultTolerance | None, words: Sequence[Signal], without: str, with_agent: str
):
    assert cure(margins, *words) == without
    assert cure(margins, *words, agent(), policy=GUARDED) == with_agent


def test_freezing_broker_is_held_for_acks_all_or_else_demoted():
    judged = held_in(LEADING)
    judged[1] = replace(judged[1], reason=Reason.FREEZING, slow=None)
    well = disk(1, Reading.PASSING)

    def of(policy: Policy, *signals: Signal) -> Decisions:
        return decide(Context(scene(LEADING, *signals, margins=UNKNOWN), judged, policy))

    assert of(GUARDED, well, agent()).to_hold == (1,)
    for found in (of(PLAIN, well), of(GUARDED, well), of(replace(GUARDED, demotion=ACKS_ONE), well, agent())):
        assert (list(found.demoted), found.to_hold) == ([1], ())


def test_stalled_disk_not_fenced_in_time_is_demoted_without_agent():
    waited = replace(disk(), latency_seconds=FENCED_WITHIN_SECONDS)
    assert cure(TRAILS, waited) == "demotion"
    assert cure(TRAILS, waited, agent(), policy=GUARDED) == "hold"
    assert_wording(decided(TRAILS, STALLED).held[0].message)


def test_stalled_disk_kafka_will_not_fence_is_demoted_at_once():
    beside = replace(STALLED, directory="/data-1", metadata_log=False)
    for reason in (Reason.STORAGE_SLOW, Reason.NOT_FENCED_IN_TIME):
        assert cure(TRAILS, beside, reason=reason) == "demotion"
        assert cure(TRAILS, beside, agent(), policy=GUARDED, reason=reason) == "hold"
    hangs_as_well = replace(STALLED, directory="/data-0", metadata_log=True)
    assert cure(TRAILS, beside, hangs_as_well) == "NoRelief"


def test_where_producers_wait_for_leader_alone_demotion_is_cure():
    assert cure(TRAILS, policy=replace(PLAIN, demotion=ACKS_ONE)) == "demotion"


@pytest.mark.parametrize(("reading", "chosen"), [(Reading.FAILING, "NoRelief"), (Reading.PASSING, "demotion")])
def test_measured_remote_time_overrules_acks_one(reading: Reading, chosen: str):
    rule = PrometheusRule(name="acks", query="remote", threshold=0, shows_acks=True)
    measured = Signal(3, SignalType.PROMETHEUS, "acks", reading, START, 0.0, value=4.0)
    policy = replace(
        PLAIN,
        demotion=replace(PLAIN.demotion, producer_acks=ProducerAcks.ONE),
        detection=Detection(prometheus_rules=(rule,)),
    )
    assert cure(TRAILS, disk(), measured, policy=policy) == chosen


def test_broker_that_leads_nothing_is_demoted_as_nothing_is_elected():
    led = cluster(partition(replicas=(2, 3, 1)))
    assert cure(TRAILS, seen=led) == "demotion"
    assert cure(TRAILS, STALLED, seen=led) == "demotion"


def test_stalled_broker_just_fenced_is_held_before_it_returns():
    fenced = cluster(
        partition(replicas=(1, 2, 3), leader=2, isr=(2, 3)), partition(index=1, replicas=(2, 3, 1), isr=(2, 3))
    )
    assert cure(TRAILS, STALLED, agent(), seen=fenced, policy=GUARDED) == "hold"


def test_a_broker_that_kafka_lets_go_is_demoted():
    gone = partition(index=1, replicas=(2, 3, 1), isr=(2, 3))
    assert cure(TRAILS, seen=cluster(LEADING.partitions[0], gone)) == "demotion"
    still = [partition(index=n, replicas=(2, 3, 1)) for n in (2, 3)]
    assert cure(TRAILS, seen=cluster(LEADING.partitions[0], gone, *still)) == "NoRelief"


def test_unreachable_broker_is_demoted_whatever_its_disk_does():
    cut = Reason.EXTERNALLY_UNREACHABLE
    assert cure(TRAILS, reason=cut) == "demotion"
    assert cure(TRAILS, disk(), agent(), policy=GUARDED, reason=cut) == "hold"


def test_the_reason_says_why_and_what_helps():
    held = decided(TRAILS).held[0]
    assert_wording(held.message)
    assert "spec.quarantine.mode" in held.message
    assert "cordon its node first" in held.message
    silent = decided(TRAILS, disk(), policy=GUARDED).held[0]
    assert "no quarantine agent reports" in silent.message


def test_broker_that_is_ordered_into_quarantine_is_left_to_it():
    facts = replace(scene(LEADING, disk(), agent(), margins=TRAILS), quarantine_orders={1: ordered()})
    found = decide(Context(facts, held_in(LEADING), GUARDED))
    assert (found.demoted, found.to_hold, found.held) == ({}, (), ())


def test_a_policy_that_only_observes_says_what_it_would_do():
    observing = replace(GUARDED, mode=Mode.OBSERVE)
    found = decided(TRAILS, disk(), agent(), policy=observing)
    assert (found.to_hold, found.held[0].reason) == ((), Reason.NOT_ENFORCING)
    assert_wording(found.held[0].message)


def test_without_brokers_there_is_no_cure():
    assert not choose_cures([], {}, Context(scene(), {}, PLAIN)).demoted


def test_broker_without_relief_takes_no_place_of_cap_from_another():
    seen = cluster(*LEADING.partitions, partition(index=2, replicas=(4, 5, 3)), brokers=5)
    judged = held_in(seen, sick=[1, 4])
    judged[1] = replace(judged[1], severity=9)
    judged[4] = replace(judged[4], reason=Reason.EXTERNALLY_UNREACHABLE, severity=1)
    found = decide(Context(scene(seen, disk(), margins=TRAILS), judged, PLAIN))
    assert set(found.demoted) == {4}
    assert [(one.broker, one.reason) for one in found.held] == [(1, Reason.NO_RELIEF)]
