"""What a verdict says of the cause why a broker cannot be reached, or is slow to answer."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.detection.finding_messages import WORDS
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.reasons import Reason
from bellwether.core.signals import Harm, UnreachableCause
from testkit.messages import assert_wording
from testkit.values.builders import after, snapshot
from testkit.values.vantage_signals import BAD, GOOD, of_one, words


class TestTheCause:
    """A verdict says what requests break at, and what to check."""

    REFUSED, DROPPED = UnreachableCause.REFUSED, UnreachableCause.NO_CONNECTION

    def test_one_cause_is_named_once_with_what_to_check(self):
        found = of_one(snapshot(None, *words(BAD, BAD, causes=(self.REFUSED, self.REFUSED))))
        assert found.cause is self.REFUSED
        assert_wording(found.message)

    def test_causes_are_named_by_vantage_and_most_frequent_counts(self):
        found = of_one(snapshot(None, *words(BAD, BAD, BAD, causes=(self.REFUSED, self.DROPPED, self.DROPPED))))
        assert found.cause is self.DROPPED
        assert_wording(found.message)

    def test_check_is_left_out_where_internal_listener_fails_too(self):
        silent = UnreachableCause.NO_ANSWER
        found = of_one(snapshot(None, *words(BAD, BAD, causes=(silent, silent), control=BAD)))
        assert_wording(found.message)

    def test_a_vantage_that_names_none_adds_nothing(self):
        found = of_one(snapshot(None, *words(BAD, BAD)))
        assert found.cause is None
        assert_wording(found.message)

    def test_one_vantage_that_fails_alone_says_why(self):
        found = of_one(snapshot(None, *words(BAD, GOOD, GOOD, causes=(self.DROPPED,))))
        assert found.reason is Reason.VANTAGES_DISAGREE
        assert_wording(found.message)

    def test_harm_that_is_left_of_earlier_failures_is_said_apart(self):
        harm = Harm(9.0, 1.0, after(0), earlier_seconds=5.0)
        found = of_one(snapshot(None, *(replace(s, harm=harm if s.reading is BAD else None) for s in words(BAD, BAD))))
        assert_wording(found.message)

    def slow_from(self, vantages: str) -> Verdict:
        cause, said = UnreachableCause.SLOW, words(GOOD, GOOD, GOOD)
        slow = [replace(s, cause=cause) if s.broker == 1 and s.source in vantages else s for s in said]
        return of_one(snapshot(None, *slow))

    def test_slow_answers_to_a_quorum_raise_doubt_and_say_why(self):
        found = self.slow_from("ab")
        assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.HARM_BELOW_COST)
        assert_wording(found.message)

    def test_slow_answers_to_one_vantage_alone_raise_none(self):
        assert self.slow_from("a").state is HealthState.HEALTHY

    def test_every_cause_has_words(self):
        assert set(WORDS) == set(UnreachableCause)
