from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bellwether.core.signals import Reading, UnreachableCause
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.reachability_state import ProbeRound, ReachabilityState
from testkit.messages import assert_wording

START = datetime(2026, 1, 1, tzinfo=UTC)


GOOD = ProbeAnswer(True, 0.002)
REFUSED = ProbeAnswer(False, 0.001, "Connect", "10.0.0.1:9094: connection refused", cause=UnreachableCause.REFUSED)
DROPPED = ProbeAnswer(
    False, 2.0, "Connect", "10.0.0.1:9094: no connection in time", cause=UnreachableCause.NO_CONNECTION
)


def after(*rounds: ProbeRound, start: ReachabilityState | None = None) -> ReachabilityState:
    state = start or ReachabilityState()
    for second, seen in enumerate(rounds):
        state = state.after(seen, START + timedelta(seconds=second))
    return state


def seen(external: ProbeAnswer | None = GOOD, internal: ProbeAnswer | None = GOOD) -> ProbeRound:
    return ProbeRound("10.0.0.1:9094", external, internal)


WELL = after(*[seen()] * 5)


def test_nothing_is_said_before_enough_was_measured() -> None:
    assert after(*[seen()] * 4).signal(1, "here") is None
    assert after(seen(REFUSED)).signal(1, "here") is None


def test_unreachable_broker_is_named_with_its_harm_and_its_control() -> None:
    signal = after(*[seen(REFUSED)] * 3, start=WELL).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control, signal.latency_seconds) == (Reading.FAILING, Reading.PASSING, None)
    assert signal.harm is not None
    assert signal.harm.lost_seconds == 2.2
    assert_wording(signal.message)


def cause_after(*rounds: ProbeRound, start: ReachabilityState = WELL) -> UnreachableCause | None:
    signal = after(*rounds, start=start).signal(1, "here")
    assert signal is not None
    return signal.cause


def test_cause_is_where_failed_requests_break() -> None:
    assert cause_after(*[seen(REFUSED)] * 3) is UnreachableCause.REFUSED
    assert cause_after(*[seen(REFUSED)] * 3, *[seen()] * 6) is None


def test_slow_broker_is_refused_if_refusing_and_slow_if_late() -> None:
    late = ProbeAnswer(False, 2.0, "Request", "no answer in time", cause=UnreachableCause.NO_ANSWER)
    for said, cause in ((REFUSED, UnreachableCause.REFUSED), (late, UnreachableCause.SLOW)):
        assert cause_after(*[replace(seen(said), slow=True)] * 3) is cause


def test_that_the_gap_of_a_restart_has_faded_is_news() -> None:
    faded = after(*[seen()] * 20, start=WELL)
    noted = replace(faded, frozen_seconds=5.0)
    assert replace(faded, frozen_seconds=0.9).differs(noted, 0.0)
    assert not replace(faded, frozen_seconds=4.0).differs(noted, 0.0)


def test_one_other_failure_is_no_other_cause_and_three_are() -> None:
    failing = after(*[seen(REFUSED)] * 3, start=WELL)
    assert cause_after(seen(DROPPED), seen(REFUSED), start=failing) is UnreachableCause.REFUSED
    assert cause_after(*[seen(DROPPED)] * 3, start=failing) is UnreachableCause.NO_CONNECTION


def test_a_round_counts_for_the_seconds_that_it_covers() -> None:
    state = WELL
    for _ in range(4):
        state = state.after(seen(REFUSED), START, 0.5)
    assert state.external.lost_seconds == pytest.approx(1.55)


def test_connections_of_which_seven_in_ten_are_reset_are_harm() -> None:
    rounds = [seen(REFUSED if n % 10 < 7 else GOOD) for n in range(20)]
    assert after(*rounds, start=WELL).external.lost_seconds == pytest.approx(12.0)
    assert after(*rounds, start=WELL).external.reading is Reading.FAILING


def test_a_dead_broker_fails_on_both_paths() -> None:
    signal = after(*[seen(REFUSED, REFUSED)] * 3).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.FAILING)


def test_a_vantage_without_an_internal_path_knows_no_control() -> None:
    signal = after(*[seen(REFUSED, None)] * 3).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.UNKNOWN)


FROZEN = seen(ProbeAnswer(False, 2.0, "Connect", "no answer"), ProbeAnswer(False, 2.0, "Connect", "no answer"))
LATE = seen(ProbeAnswer(True, 1.9), ProbeAnswer(True, 1.9))


def frozen(*rounds: ProbeRound) -> float:
    return after(*rounds, start=WELL).frozen_seconds


def test_a_freeze_counts_as_one_when_it_is_over() -> None:
    assert frozen(*[FROZEN] * 4) == 0.0
    assert frozen(*[FROZEN] * 4, seen()) == pytest.approx(3.5)
    assert frozen(*[FROZEN] * 4, seen(), *[FROZEN] * 4) == pytest.approx(3.5)
    assert frozen(*[FROZEN] * 4, seen(), *[FROZEN] * 4, seen()) == pytest.approx(7.0)


def test_answers_that_a_freeze_has_kept_waiting_belong_to_it() -> None:
    assert frozen(*[FROZEN] * 2, *[LATE] * 2, seen()) == pytest.approx(3.5)


def test_a_listener_that_fails_alone_is_no_freeze() -> None:
    assert frozen(*[seen(REFUSED)] * 9, seen()) == 0.0


def test_the_signal_has_what_freezes_lost_of_its_harm() -> None:
    signal = after(*[FROZEN] * 4, seen(), start=WELL).signal(1, "here")
    assert signal is not None
    assert signal.harm is not None
    assert (signal.harm.lost_seconds, signal.harm.frozen_seconds) == (3.5, 3.5)


def test_latency_and_single_failures_are_no_news() -> None:
    rounds = [seen(ProbeAnswer(True, 0.4)), seen(REFUSED), *[seen()] * 10, seen(REFUSED, REFUSED), seen()]
    assert not after(*rounds, start=WELL).differs(WELL, 60)


def test_another_way_of_failing_is_news_once_it_stays() -> None:
    silent = ProbeAnswer(False, 2.0, "Request", "10.0.0.1:9094: connected, but no answer in time")
    first = after(*[seen(REFUSED)] * 700)
    assert not after(seen(silent), seen(silent), start=first).differs(first, 0)
    assert after(seen(silent), seen(silent), seen(silent), start=first).differs(first, 0)


def test_the_wrong_broker_counts_as_a_failure() -> None:
    wrong = ProbeAnswer(False, 0.002, "WrongBroker", "10.0.0.1:9094: another broker than 1 answered")
    signal = after(*[seen(wrong)] * 3, start=WELL).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.PASSING)
    assert "another broker than 1" in signal.message


def test_an_address_that_was_never_learned_is_no_evidence() -> None:
    assert after(*[ProbeRound("", None, GOOD)] * 9).signal(1, "here") is None


def test_trouble_of_our_own_turns_what_was_known_into_unknown() -> None:
    known = WELL
    trouble = ProbeRound("10.0.0.1:9094", None, None, "too many open files")
    once = after(trouble, start=known).signal(1, "here")
    lasting = after(trouble, trouble, trouble, start=known).signal(1, "here")
    assert once is not None
    assert lasting is not None
    assert once.reading is Reading.PASSING
    assert lasting.reading is Reading.UNKNOWN
    assert_wording(lasting.message)


def test_a_weaker_answer_says_so() -> None:
    weaker = ProbeAnswer(True, 0.002, message="a broker answered, which one is not known", weaker=True)
    signal = after(*[seen(weaker)] * 5).signal(1, "here")
    assert signal is not None
    assert signal.reading is Reading.PASSING
    assert_wording(signal.message)


def test_path_with_partial_success_fails_until_five_good_seconds() -> None:
    failing = after(*[seen(REFUSED)] * 3, start=WELL)
    lossy = after(seen(), start=failing).signal(1, "here")
    assert lossy is not None
    assert lossy.reading is Reading.FAILING
    assert "(10.0.0.1:9094 answers at times)" in lossy.message
    assert after(*[seen()] * 4, seen(REFUSED), *[seen()] * 4, start=failing).external.reading is Reading.FAILING
    assert after(*[seen()] * 5, start=failing).external.reading is Reading.PASSING


def test_broker_with_unanswered_question_is_asked_again_soon() -> None:
    assert not after(seen()).failing
    assert after(seen(), seen(REFUSED)).failing
    assert not after(seen(REFUSED), seen()).failing
