"""When a demoted broker has recovered, and which failures between two reconciles start the wait again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import pytest

from bellwether.core.detection.findings import NOT_REPORTED, EvidenceItem
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, passing_since
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.model.undo_record import Cause
from bellwether.core.settings.policy import Promotion
from bellwether.core.signals import Reading
from testkit.messages import assert_wording
from testkit.values.builders import after, demoted, record, snapshot, verdict
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, POLICY, of_one, words


def item(
    since: datetime, reading: Reading = Reading.PASSING, *, source: str = "a", ignored_because: str = ""
) -> EvidenceItem:
    return EvidenceItem("ExternalReachability", source, reading, since, ignored_because=ignored_because)


@pytest.mark.parametrize(
    ("last", "now", "failed"),
    [
        pytest.param([item(after(0))], [item(after(0))], False, id="it passes since the same time"),
        pytest.param([item(after(0))], [item(after(9))], True, id="it passes since a later time"),
        pytest.param([item(after(9))], [item(after(0))], True, id="the prober's clock was set back in between"),
        pytest.param([], [item(after(9))], False, id="the source is new"),
        pytest.param([item(after(0))], [], False, id="the source is gone"),
        pytest.param([item(after(0), Reading.FAILING)], [item(after(9))], False, id="the last verdict saw it fail"),
        pytest.param([item(after(0))], [item(after(9), Reading.FAILING)], False, id="this verdict sees it fail"),
        pytest.param([item(after(0))], [item(after(9), ignored_because="not named")], False, id="it does not count"),
        pytest.param([item(after(0), ignored_because=NOT_REPORTED)], [item(after(9))], True, id="it was stale"),
        pytest.param([item(after(0))], [item(after(9), ignored_because=NOT_REPORTED)], True, id="it is stale"),
        pytest.param(
            [item(after(0)), item(after(1), source="b")],
            [item(after(1), source="b"), item(after(0))],
            False,
            id="another source passes since another time",
        ),
    ],
)
def test_passing_signal_that_began_at_another_time_failed_in_between(
    last: list[EvidenceItem], now: list[EvidenceItem], failed: bool
):
    assert KnownGood(passing=passing_since(last)).failed_since(passing_since(now)) is failed


def test_demoted_broker_without_clients_for_a_while_is_no_failure():
    assert passing_since([EvidenceItem("SelfReachability", "a", Reading.PASSING, after(0))]) == {}


class TestStabilization:
    SICK = record(None, demoted(1))

    def judged(self, seconds: float, before: Verdict | None, *readings: Reading, wait: int = 60) -> Verdict:
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=wait))
        return of_one(snapshot(None, *words(*readings), now=after(seconds), undo=self.SICK), policy, before)

    def well(self, seconds: Iterable[float], before: Verdict | None) -> Verdict:
        """Its verdict after good reads at these times."""
        for at in seconds:
            before = self.judged(at, before, GOOD, GOOD)
        assert before is not None
        return before

    def test_a_demoted_broker_must_stay_well_before_it_is_healthy(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        assert (first.state, first.since) == (HealthState.RECOVERING, after(10))
        waiting = self.well([20, 30, 40, 50, 60, 69.9], first)
        assert (waiting.state, waiting.since) == (HealthState.RECOVERING, after(10))
        assert self.judged(70, waiting, GOOD, GOOD).state is HealthState.HEALTHY

    def test_between_two_reads_no_more_counts_than_signal_stays_fresh(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        assert self.judged(3600, first, GOOD, GOOD).known_good.seconds == 10

    def test_a_relapse_restarts_the_wait(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        relapse = self.judged(60, first, BAD, BAD)
        assert relapse.state is HealthState.SICK
        assert self.judged(80, relapse, GOOD, GOOD).since == after(80)

    @pytest.mark.parametrize("silence", [2, 3600])
    def test_only_seconds_between_two_good_reads_count(self, silence: float):
        first = self.well([10, 20], verdict())
        gap = self.judged(25, first, DUNNO, DUNNO)
        assert (gap.state, gap.known_good.seconds, gap.known_state) == (HealthState.UNKNOWN, 10, HealthState.RECOVERING)
        again = self.well([25 + silence, 34 + silence], gap)
        assert (again.state, again.known_good.seconds) == (HealthState.RECOVERING, 19)

    def test_a_clock_that_was_set_back_changes_nothing(self):
        assert self.well([10, 15, -3600, -3595], verdict()).known_good.seconds == 10

    def test_another_process_goes_on_from_the_seconds_that_are_known(self):
        reported = replace(verdict(state=HealthState.RECOVERING), known_good=KnownGood(48.0))
        assert self.judged(3600, reported, GOOD, GOOD).known_good.seconds == 48
        assert self.well([3600, 3610], reported).state is HealthState.RECOVERING
        assert self.well([3600, 3610, 3612], reported).state is HealthState.HEALTHY

    def test_a_first_read_without_fresh_evidence_hides_no_failure(self):
        known = self.well([10, 20], verdict())
        reported = replace(known, known_good=replace(known.known_good, read_at=None))
        blipped = [replace(s, since=after(90), age_seconds=None) for s in words(GOOD, GOOD)]
        cold = of_one(snapshot(None, *blipped, now=after(100), undo=self.SICK), POLICY, reported)
        assert (cold.state, cold.known_good.seconds) == (HealthState.UNKNOWN, 0)

    def test_failure_while_its_source_was_gone_starts_wait_again(self):
        gone = self.judged(25, self.well([10, 20], verdict()))
        blipped = [replace(s, since=after(26)) for s in words(GOOD, GOOD)]
        assert of_one(snapshot(None, *blipped, now=after(30), undo=self.SICK), POLICY, gone).known_good.seconds == 0

    def test_a_healthy_verdict_from_before_the_demotion_does_not_count(self):
        self.SICK = record(None, demoted(1, since=after(5)))
        former = verdict(state=HealthState.HEALTHY, since=after(0))
        found = self.judged(6, former, GOOD, GOOD)
        assert (found.state, found.since) == (HealthState.RECOVERING, after(6))

    def test_recovering_from_before_the_demotion_does_not_count(self):
        self.SICK = record(None, demoted(1, since=after(5)))
        former = replace(verdict(state=HealthState.RECOVERING, since=after(-60)), known_good=KnownGood(60.0))
        found = self.judged(6, former, GOOD, GOOD)
        assert (found.since, found.known_good.seconds) == (after(6), 0)

    def test_broker_that_person_demoted_while_it_was_healthy_stays_healthy(self):
        self.SICK = record(None, demoted(1, Cause.OVERRIDE, since=after(5)))
        former = verdict(state=HealthState.HEALTHY, since=after(0))
        assert self.judged(6, former, GOOD, GOOD).state is HealthState.HEALTHY

    @pytest.mark.parametrize("cause", [Cause.SIGNALS, Cause.MAINTENANCE])
    def test_a_failure_between_two_reconciles_starts_the_wait_again(self, cause: Cause):
        self.SICK = record(None, demoted(1, cause))
        first = self.judged(10, verdict(), GOOD, GOOD)
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=60))
        blipped = [replace(s, since=after(30)) if s.source == "b" else s for s in words(GOOD, GOOD)]
        found = of_one(snapshot(None, *blipped, now=after(70), undo=self.SICK), policy, first)
        assert (found.state, found.since) == (HealthState.RECOVERING, after(70))

    def test_failure_between_reconciles_leaves_undemoted_broker_unchanged(self):
        first = of_one(snapshot(None, *words(GOOD, GOOD), now=after(10)))
        blipped = [replace(s, since=after(30)) if s.source == "b" else s for s in words(GOOD, GOOD)]
        found = of_one(snapshot(None, *blipped, now=after(70)), before=first)
        assert (found.state, found.since) == (HealthState.HEALTHY, after(10))

    def test_failure_in_between_is_not_read_from_clock_of_prober(self):
        ahead = [replace(s, since=after(9999)) for s in words(GOOD, GOOD)]
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=60))
        found = verdict()
        for at in range(10, 71, 10):
            found = of_one(snapshot(None, *ahead, now=after(at), undo=self.SICK), policy, found)
        assert found.state is HealthState.HEALTHY

    def test_who_was_healthy_already_stays_so(self):
        well = verdict(state=HealthState.HEALTHY)
        assert self.judged(1, well, GOOD, GOOD).state is HealthState.HEALTHY

    def test_who_was_never_demoted_is_healthy_at_once(self):
        assert of_one(snapshot(None, *words(GOOD, GOOD)), before=verdict()).state is HealthState.HEALTHY

    def test_the_message_says_how_long(self):
        assert_wording(self.judged(10, None, GOOD, GOOD).message)
