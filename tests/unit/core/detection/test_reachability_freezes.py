"""Brokers that freeze again and again, each time for less than Kafka needs to fence them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.core.signals import Harm, Reading, Signal
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, partition, record, snapshot, verdict
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, of_one, words


class TestFreezing:
    """Gaps that Kafka does not fence add up: those that are over show that the next one is no crash."""

    def gap(self, lost: float, frozen: float, *, control: Reading = BAD) -> list[Signal]:
        harm = Harm(lost, 0.9, after(0), frozen_seconds=frozen)
        return [replace(s, harm=harm) if s.broker == 1 else s for s in words(BAD, BAD, BAD, control=control)]

    def answers(self, frozen: float, reading: Reading = BAD) -> list[Signal]:
        harm = Harm(frozen, 0.3, after(0), ongoing=False, frozen_seconds=frozen)
        return [replace(s, harm=harm) if s.broker == 1 else s for s in words(reading, reading, reading, control=BAD)]

    FROZEN = verdict(state=HealthState.SICK, reason=Reason.FREEZING)

    @pytest.mark.parametrize(
        ("lost", "frozen", "reason"),
        [
            pytest.param(20.0, 0.0, Reason.UNREACHABLE, id="one gap alone, however much it loses"),
            pytest.param(20.0, 0.9, Reason.UNREACHABLE, id="after a pause that cost little"),
            pytest.param(2.2, 1.5, Reason.HARM_BELOW_COST, id="all together less than a move costs"),
            pytest.param(2.4, 1.5, Reason.FREEZING, id="all together as much as a move costs"),
        ],
    )
    def test_past_and_present_gaps_together_cost_as_move(self, lost: float, frozen: float, reason: Reason):
        assert of_one(snapshot(None, *self.gap(lost, frozen))).reason is reason

    def test_freezing_is_sick_and_says_why_kafka_does_not_help(self):
        found = of_one(snapshot(None, *self.gap(5.0, 3.0)))
        assert found.state == HealthState.SICK
        assert_wording(found.message)

    def test_message_says_where_no_vantage_probes_internal_listener(self):
        found = of_one(snapshot(None, *self.gap(5.0, 3.0, control=DUNNO)))
        assert found.reason is Reason.FREEZING
        assert_wording(found.message)

    def test_a_broker_that_answers_inside_is_not_freezing(self):
        assert of_one(snapshot(None, *self.gap(5.0, 3.0, control=GOOD))).reason is Reason.EXTERNALLY_UNREACHABLE

    @pytest.mark.parametrize("reading", [BAD, GOOD])
    def test_answers_between_two_gaps_change_no_word(self, reading: Reading):
        was = of_one(snapshot(None, *self.gap(5.0, 3.0)))
        found = of_one(snapshot(None, *self.answers(9.0, reading), now=after(6)), before=was)
        assert (found.state, found.reason, found.message, found.since) == (
            was.state,
            was.reason,
            was.message,
            was.since,
        )

    def test_after_gap_its_answers_and_next_gap_are_one_word(self):
        found = [of_one(snapshot(None, *seen)) for seen in (self.answers(1.5, GOOD), self.gap(2.2, 1.5))]
        assert {(v.state, v.reason) for v in found} == {(HealthState.SUSPECT, Reason.HARM_BELOW_COST)}
        assert found[0].message == found[1].message
        assert_wording(found[0].message)

    def test_acks_all_still_waits_for_it_when_it_leads_nothing(self):
        seen = cluster(partition(replicas=(2, 1, 3)))
        assert_wording(of_one(snapshot(seen, *self.gap(5.0, 3.0))).message)

    def test_it_is_over_when_its_harm_has_faded(self):
        assert of_one(snapshot(None, *self.answers(1.0, GOOD)), before=self.FROZEN).reason is Reason.FREEZING
        assert of_one(snapshot(None, *self.answers(0.9, GOOD)), before=self.FROZEN).reason is Reason.SIGNALS_PASSING

    def test_a_quorum_has_seen_the_gaps_that_are_over(self):
        one = [replace(s, harm=Harm(5.0, 0.9, after(0), frozen_seconds=0.0)) for s in self.gap(5.0, 3.0)]
        mixed = [b if a.source == "a" else c for a, b, c in zip(one, self.gap(5.0, 3.0), one, strict=True)]
        said = [s if s.broker == 1 else replace(s, harm=None) for s in mixed]
        assert of_one(snapshot(None, *said)).reason is Reason.UNREACHABLE

    def test_demotion_for_it_awaits_evidence_where_no_vantage_is_left(self):
        undo = record(None, replace(demoted(1), reason=Reason.FREEZING))
        assert of_one(snapshot(None, undo=undo), before=self.FROZEN).state is HealthState.UNKNOWN

    def test_within_minute_after_kafka_fenced_it_nothing_is_freeze(self):
        was = of_one(snapshot(cluster(fenced=(1,))))
        for seconds in (1, 59):
            was = of_one(snapshot(None, *self.gap(90.0, 80.0), now=after(seconds)), before=was)
            assert was.reason is not Reason.FREEZING
        assert of_one(snapshot(None, *self.gap(90.0, 80.0), now=after(60)), before=was).reason is Reason.FREEZING
