"""Signals of a broker in maintenance: ignored while it is drained, and stale for a while after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Policy
from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import Override, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import START, after, cluster, demoted, drain, partition, record, signal, snapshot

POLICY = Policy(name="main")
GRACE = POLICY.detection.external_reachability.startup_grace_seconds
SEEN = cluster(*(partition(index=i, replicas=[i + 2, 3 - i, 1]) for i in range(2)))
LEADING = cluster(*SEEN.partitions, partition(index=2, replicas=[1, 2, 3]))
GOOD, BAD = Reading.PASSING, Reading.FAILING


def words(broker: int, reading: Reading, since: datetime = START) -> list[Signal]:
    return [signal(broker, reading, source=s, since=since) for s in ("vantage-a", "vantage-b")]


def judged(
    first: Sequence[Signal],
    at: float = 0,
    *said: Override,
    before: dict[int, Verdict] | None = None,
    seen: Cluster = SEEN,
    drained: bool | None = None,
    policy: Policy = POLICY,
) -> dict[int, Verdict]:
    everybody = [w for b in (1, 2, 3) if b not in {s.broker for s in first} for w in words(b, GOOD)]
    in_force = bool(said) if drained is None else drained
    undo = record(None, demoted(1, Cause.MAINTENANCE)) if in_force else None
    return judge(snapshot(seen, *first, *everybody, now=after(at), undo=undo, overrides=said), policy, before or {})


def test_a_drained_broker_is_unknown_whatever_its_signals_say():
    for reading in (GOOD, BAD):
        found = judged(words(1, reading), 0, drain(1, "new disk"))[1]
        assert (found.state, found.reason) == (HealthState.UNKNOWN, Reason.IN_MAINTENANCE)
        assert "new disk" in found.message
        assert_wording(found.change)


@pytest.mark.parametrize(
    ("seen", "drained"),
    [
        pytest.param(LEADING, False, id="its drain is held"),
        pytest.param(LEADING, True, id="it leads what no other can"),
        pytest.param(SEEN, False, id="its drain is held, and it leads nothing"),
    ],
)
def test_broker_is_judged_normally_until_its_drain_is_in_force(seen: Cluster, drained: bool):
    for reading, state in ((GOOD, HealthState.HEALTHY), (BAD, HealthState.SICK)):
        asked = judged(words(1, reading), 0, drain(1), seen=seen, drained=drained)[1]
        assert asked == replace(judged(words(1, reading), 0, seen=seen, drained=drained)[1], message=asked.message)
        assert asked.state is (HealthState.RECOVERING if drained and reading is GOOD else state)
        assert asked.away is None, "its maintenance explains no silence"


def test_a_broker_that_leads_in_maintenance_is_not_promoted_meanwhile():
    found = judged(words(1, GOOD), 0, drain(1, "new disk"), seen=LEADING)
    for at in range(10, 1000, 10):
        found = judged(words(1, GOOD), at, drain(1, "new disk"), seen=LEADING, before=found)
    assert found[1].state == HealthState.RECOVERING
    assert_wording(found[1].message)
    for at in range(1000, 1061, 5):
        assert found[1].state is HealthState.RECOVERING
        found = judged(words(1, GOOD), at, seen=LEADING, before=found, drained=True)
    assert found[1].state is HealthState.HEALTHY


@pytest.mark.parametrize("seconds", [1, 10, 40])
def test_broker_that_was_healthy_before_short_maintenance_must_stay_well(seconds: int):
    well = judged(words(1, GOOD))
    pod = replace(demoted(1, Cause.MAINTENANCE, after(1)), drained_since=after(1))
    facts = snapshot(SEEN, *words(1, GOOD), now=after(1), undo=record(None, pod), overrides=[drain(1)])
    inside = judge(facts, POLICY, well)
    over = judge(replace(facts, now=after(1 + seconds), overrides=()), POLICY, inside)
    assert over[1].state is HealthState.RECOVERING


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(cluster(*SEEN.partitions, fenced=[1]), id="fenced"),
        pytest.param(cluster(partition(isr=[2, 3]), brokers=[2, 3]), id="gone"),
    ],
)
def test_a_broker_stopped_in_maintenance_is_down_without_an_alarm(seen: Cluster):
    found = judged(words(1, BAD), 0, drain(1), seen=seen)[1]
    assert (found.state, found.reason) == (HealthState.DOWN, Reason.IN_MAINTENANCE)


def test_the_same_news_gives_the_same_verdict():
    first = judged(words(1, BAD), 0, drain(1))
    again = judged(words(1, BAD), 50, drain(1), before=first)
    assert [replace(v, former=None) for v in again.values()] == list(first.values())


def test_what_it_was_before_is_no_reason_afterwards():
    sick = judged(words(1, BAD))
    assert sick[1].state is HealthState.SICK
    inside = judged(words(1, BAD), 5, drain(1), before=sick)
    still = judged(words(1, BAD), 7, drain(1), before=inside)
    assert (still[1].since, still[1].former) == (after(5), None)
    after_it = judged(words(1, BAD), 10, before=inside)
    assert after_it[1].state is not HealthState.SICK


def test_fault_that_returns_afterwards_keeps_its_age():
    def disk(since: float) -> list[Signal]:
        slow = signal(1, BAD, kind=SignalType.STORAGE_LATENCY, source="disk-1", since=after(since))
        peer = signal(2, GOOD, kind=SignalType.STORAGE_LATENCY, source="disk-2")
        return [*words(1, GOOD), replace(slow, latency_seconds=0.5), peer]

    sick = judged(disk(0))
    assert sick[1].reason is Reason.STORAGE_SLOW
    inside = judged(disk(0), 5, drain(1), before=sick)
    over = judged(words(1, GOOD), 10, before=inside)
    back = judged(disk(12), 12, before=over)
    assert (back[1].state, back[1].since) == (HealthState.SICK, after(12))
    at_once = judged(disk(6), 10, before=inside)
    assert at_once[1].state is not HealthState.SICK


class TestAfterwards:
    def ended(self, first: Sequence[Signal], at: float = 100) -> dict[int, Verdict]:
        inside = judged(first, at - 1, drain(1))
        return judged(first, at, before=inside)

    def test_failure_since_before_end_is_no_evidence(self):
        found = self.ended(words(1, BAD, after(50)))[1]
        assert (found.state, found.resumed) == (HealthState.UNKNOWN, after(100))

    def test_neither_is_what_a_rule_over_the_last_minutes_says(self):
        found = signal(1, BAD, kind="DiskFailure", source="zone-a", since=after(90))
        policy = replace(POLICY, detection=Detection(plugins=(Plugin(type="DiskFailure"),)))
        said = [*words(1, GOOD), found]
        inside = judged(said, 99, drain(1), policy=policy)
        over = judged(said, 100, before=inside, policy=policy)
        assert over[1].state is HealthState.HEALTHY
        late = [*words(1, GOOD), replace(found, since=after(101))]
        assert judged(late, 102, before=over, policy=policy)[1].state is HealthState.SICK

    def test_first_failure_gets_as_long_as_after_restart(self):
        before = self.ended(words(1, GOOD))
        found = judged(words(1, BAD, after(101)), 101, before=before)[1]
        # It was reached before: then it is no start, and the fault counts.
        assert found.state is HealthState.SICK
        before = self.ended(words(1, BAD, after(50)))
        found = judged(words(1, BAD, after(101)), 101, before=before)[1]
        assert found.reason is Reason.RESTARTING

    def test_once_the_time_is_over_a_fault_is_a_fault(self):
        said = words(1, BAD, after(50))
        verdicts = self.ended(said)
        for at in (101, 100 + GRACE - 1):
            verdicts = judged(said, at, before=verdicts)
            assert verdicts[1].state is not HealthState.SICK
        verdicts = judged(said, 100 + GRACE, before=verdicts)
        assert (verdicts[1].state, verdicts[1].resumed) == (HealthState.SICK, None)

    def test_drained_broker_must_stay_well_before_it_counts_as_such(self):
        stopped = judged(words(1, BAD), 50, drain(1), seen=cluster(*SEEN.partitions, fenced=[1]), drained=True)
        back = judged(words(1, GOOD), 60, drain(1), before=stopped, drained=True)
        found = judged(words(1, GOOD), 100, before=back, drained=True)
        assert found[1].state is HealthState.RECOVERING
        for seconds in range(10, POLICY.promotion.stabilization_seconds + 1, 10):
            assert found[1].state is HealthState.RECOVERING
            found = judged(words(1, GOOD), 100 + seconds, before=found, drained=True)
        assert found[1].state is HealthState.HEALTHY

    def test_it_begins_when_a_drained_broker_leads_again_in_maintenance(self):
        inside = judged(words(1, BAD, after(50)), 99, drain(1))
        found = judged(words(1, BAD, after(50)), 100, drain(1), seen=LEADING, before=inside)[1]
        assert (found.state, found.resumed) == (HealthState.UNKNOWN, after(100))

    def test_a_second_maintenance_ends_the_time_of_the_first(self):
        first = self.ended(words(1, BAD, after(50)))
        assert judged(words(1, BAD), 110, drain(1), before=first)[1].resumed is None


class TestOthers:
    DRAINED = record(None, demoted(1, Cause.MAINTENANCE))

    def test_vantage_failing_everywhere_is_blind_while_one_is_in_grace(self):
        two = cluster(partition(replicas=(1, 2)), brokers=2)
        failing = [word for b in (1, 2) for word in words(b, BAD, after(50))]
        ended = judged(failing, 100, before=judged(failing, 60, drain(2), seen=two), seen=two)
        assert ended[1].state is HealthState.UNKNOWN
        assert_wording(ended[1].message)

    def test_vantage_that_knows_nothing_of_broker_does_not_reach_it(self):
        said = [word for b, reading in ((1, BAD), (2, BAD), (3, Reading.UNKNOWN)) for word in words(b, reading)]
        assert judged(said, 0)[1].state is HealthState.UNKNOWN

    def disks(self, *milliseconds: float) -> list[Signal]:
        return [
            replace(
                signal(b, BAD if ms > 40 else GOOD, kind=SignalType.STORAGE_LATENCY, source=f"disk-{b}"),
                latency_seconds=ms / 1000,
            )
            for b, ms in enumerate(milliseconds, 1)
        ]

    def test_a_disk_in_maintenance_is_nobodys_peer(self):
        # Broker 1 copies its data in and is slow: it must not make the others' slowness look usual, or unusual.
        everybody = [w for b in (1, 2, 3) for w in words(b, GOOD)]
        seen = snapshot(SEEN, *everybody, *self.disks(90, 80, 1), undo=self.DRAINED, overrides=[drain(1)])
        assert judge(seen, POLICY, {})[2].state is HealthState.SICK
        alike = replace(seen, overrides=())
        assert judge(alike, POLICY, {})[1].state is not HealthState.HEALTHY

    def test_verdicts_on_the_others_are_as_without_it(self):
        rest = [w for b, reading in ((2, BAD), (3, GOOD)) for w in words(b, reading)]
        with_it = judge(snapshot(SEEN, *words(1, BAD), *rest, undo=self.DRAINED, overrides=[drain(1)]), POLICY, {})
        alone = judge(snapshot(SEEN, *rest, undo=self.DRAINED, overrides=[drain(1)]), POLICY, {})
        assert with_it == alone
