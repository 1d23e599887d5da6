from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Reading
from bellwether.probes.reachability.reachability_state import ProbeRound, ReachabilityState
from testkit.kafka.request_outcomes import Said

SETTINGS = Reachability(failure_threshold=3)
START = datetime(2026, 1, 1, tzinfo=UTC)


GOOD = Said()
REFUSED = Said(False, 0.001, "Connect", "10.0.0.1:9094: connection refused")


def after(*rounds: ProbeRound, start: ReachabilityState | None = None) -> ReachabilityState:
    state = start or ReachabilityState()
    for second, seen in enumerate(rounds):
        state = state.after(seen, SETTINGS, START + timedelta(seconds=second))
    return state


def seen(external: Said | None = GOOD, internal: Said | None = GOOD) -> ProbeRound:
    return ProbeRound("10.0.0.1:9094", external, internal)


def test_nothing_is_said_before_the_thresholds() -> None:
    assert after(seen(), seen()).signal(1, "here") is None
    assert after(seen(REFUSED), seen(REFUSED)).signal(1, "here") is None


def test_an_unreachable_broker_is_named_with_its_control() -> None:
    signal = after(seen(REFUSED), seen(REFUSED), seen(REFUSED)).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control, signal.latency_seconds) == (Reading.FAILING, Reading.PASSING, None)
    assert signal.message == "10.0.0.1:9094: connection refused 3 times; internal listener answers in 2.0 ms"


def test_a_dead_broker_fails_on_both_paths() -> None:
    signal = after(*[seen(REFUSED, REFUSED)] * 3).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.FAILING)


def test_a_vantage_without_an_internal_path_knows_no_control() -> None:
    signal = after(*[seen(REFUSED, None)] * 3).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.UNKNOWN)


def test_latency_and_single_failures_are_no_news() -> None:
    first = after(*[seen()] * 3)
    later = after(seen(Said(seconds=0.4)), seen(REFUSED), seen(), seen(REFUSED, REFUSED), seen(), start=first)
    assert later.news() == first.news()


def test_another_way_of_failing_is_news_once_it_stays() -> None:
    silent = Said(False, 2.0, "Request", "10.0.0.1:9094: connected, but no answer in time")
    first = after(*[seen(REFUSED)] * 3)
    assert after(seen(silent), seen(silent), start=first).news() == first.news()
    assert after(seen(silent), seen(silent), seen(silent), start=first).news() != first.news()


def test_the_wrong_broker_counts_as_a_failure() -> None:
    wrong = Said(False, 0.002, "WrongBroker", "10.0.0.1:9094: another broker than 1 answered")
    signal = after(*[seen(wrong)] * 3).signal(1, "here")
    assert signal is not None
    assert (signal.reading, signal.control) == (Reading.FAILING, Reading.PASSING)
    assert "another broker than 1" in signal.message


def test_an_address_that_was_never_learned_is_no_evidence() -> None:
    assert after(*[ProbeRound("", None, GOOD)] * 9).signal(1, "here") is None


def test_trouble_of_our_own_turns_what_was_known_into_unknown() -> None:
    known = after(*[seen()] * 3)
    trouble = ProbeRound("10.0.0.1:9094", None, None, "too many open files")
    once = after(trouble, start=known).signal(1, "here")
    lasting = after(trouble, trouble, trouble, start=known).signal(1, "here")
    assert once is not None
    assert lasting is not None
    assert once.reading is Reading.PASSING
    assert lasting.reading is Reading.UNKNOWN
    assert lasting.message == "this vantage cannot measure: too many open files"


def test_a_weaker_answer_says_so() -> None:
    weaker = Said(message="a broker answered, which one is not known", weaker=True)
    signal = after(*[seen(weaker)] * 3).signal(1, "here")
    assert signal is not None
    assert signal.reading is Reading.PASSING
    assert "which one is not known" in signal.message


def test_a_path_on_which_something_comes_through_is_neither_failing_nor_passing() -> None:
    failing = after(*[seen(REFUSED)] * 3)
    lossy = after(seen(), start=failing).signal(1, "here")
    assert lossy is not None
    assert (lossy.reading, lossy.message) == (
        Reading.UNKNOWN,
        "10.0.0.1:9094 answers again; internal listener answers in 2.0 ms",
    )
    again = after(seen(), seen(REFUSED), seen(REFUSED), start=failing)
    assert again.external.reading is Reading.UNKNOWN
    assert after(seen(REFUSED), start=again).external.reading is Reading.FAILING
    assert after(seen(), seen(), seen(), start=failing).external.reading is Reading.PASSING


def test_a_broker_whose_last_question_was_not_answered_is_worth_asking_again_soon() -> None:
    assert not after(seen()).failing
    assert after(seen(), seen(REFUSED)).failing
    assert not after(seen(REFUSED), seen()).failing
