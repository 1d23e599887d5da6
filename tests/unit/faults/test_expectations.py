"""The judge of the judge: every way in which a fault may come out wrong is found, and nothing else is."""

from __future__ import annotations

import pytest

from faults.accounts import Account, Word
from faults.expectations import Demotion, Expected, wrong

HEALTHY = Word("Healthy", "SignalsPassing")
CUT = Word("Sick", "ExternallyUnreachable")
SLOW = Word("Sick", "StorageSlow")
SICK = Expected((1,), ("Sick/ExternallyUnreachable",), Demotion.MUST)
NOBODY = Expected((1, 2), ("Healthy",))


def noted(*, demoted: bool = False, **said: list[Word]) -> Account:
    """What was said of brokers b1, b2 ..., a second apart; ``demoted`` is said of broker 1 with its last word."""
    seen = Account()
    for name, words in said.items():
        for at, word in enumerate(words):
            last = at == len(words) - 1
            seen.hear(float(at), int(name[1:]), word, demoted=demoted and name == "b1" and last)
    seen.see(0.5, {1: 10, 2: 10}, [])
    return seen


def cut_and_demoted() -> Account:
    seen = noted(b1=[HEALTHY, CUT, CUT], b2=[HEALTHY], demoted=True)
    seen.see(3.0, {1: 0, 2: 20}, [1])
    return seen


def test_a_sick_broker_that_was_demoted_alone_is_right() -> None:
    seen = cut_and_demoted()
    assert SICK.reached(seen)
    assert wrong(SICK, seen) == []
    assert (SICK.seconds_to_verdict(seen), SICK.seconds_to_zero_leaders(seen)) == (1.0, 3.0)


def test_the_first_doubt_that_names_what_clients_lost_is_timed() -> None:
    seen = noted(b1=[HEALTHY], b2=[HEALTHY])
    seen.hear(1.0, 1, HEALTHY, demoted=False, message="probes lost 0.5 s")
    seen.hear(2.0, 1, Word("Suspect", "HarmBelowCost"), demoted=False, message="one vantage is late")
    assert SICK.seconds_to_figure(seen) is None
    seen.hear(
        3.0, 1, Word("Suspect", "HarmBelowCost"), demoted=False, message="its probes lost 1.4 s, and moving costs"
    )
    seen.hear(4.0, 1, CUT, demoted=True, message="its probes lost 3.1 s, and moving costs")
    assert SICK.seconds_to_figure(seen) == 3.0
    assert NOBODY.seconds_to_figure(seen) is None


def test_the_wrong_reason_is_wrong() -> None:
    seen = noted(b1=[HEALTHY, SLOW], demoted=True)
    seen.see(3.0, {1: 0}, [1])
    assert not SICK.reached(seen)
    assert wrong(SICK, seen) == [
        "broker 1 is called Sick (StorageSlow), not Sick/ExternallyUnreachable",
        "broker 1 was called Sick (StorageSlow)",
    ]


def test_a_verdict_that_did_not_last_is_wrong() -> None:
    seen = noted(b1=[HEALTHY, CUT, HEALTHY], demoted=True)
    seen.see(3.0, {1: 0}, [1])
    assert "broker 1 is called Healthy (SignalsPassing), not Sick/ExternallyUnreachable" in wrong(SICK, seen)
    assert SICK.seconds_to_verdict(seen) is None


def test_a_sick_broker_that_still_leads_is_wrong() -> None:
    seen = noted(b1=[HEALTHY, CUT], demoted=True)
    assert not SICK.reached(seen)
    assert wrong(SICK, seen) == ["broker 1 still leads 10"]
    assert SICK.seconds_to_zero_leaders(seen) is None


def test_a_sick_broker_that_was_not_demoted_is_wrong() -> None:
    seen = noted(b1=[HEALTHY, CUT])
    seen.see(3.0, {1: 0}, [])
    assert not SICK.reached(seen)
    assert wrong(SICK, seen) == ["broker 1 was not demoted"]


def test_a_healthy_broker_that_is_said_to_be_demoted_is_found() -> None:
    seen = cut_and_demoted()
    seen.hear(4.0, 2, HEALTHY, demoted=True)
    assert wrong(SICK, seen) == ["demoted without need: 2"]
    assert SICK.healthy_demoted(seen) == [2]


def test_a_healthy_broker_that_only_metadata_shows_to_be_demoted_is_found() -> None:
    seen = cut_and_demoted()
    seen.see(4.0, {1: 0, 2: 0}, [1, 2])
    assert wrong(SICK, seen) == ["demoted without need: 2"]


@pytest.mark.parametrize("word", [SLOW, Word("Down", "BrokerDown")])
def test_a_bad_word_on_another_broker_is_found_though_it_passed(word: Word) -> None:
    seen = cut_and_demoted()
    for at, said in enumerate((word, HEALTHY)):
        seen.hear(4.0 + at, 2, said, demoted=False)
    assert wrong(SICK, seen) == [f"broker 2 was called {word}"]


def test_a_passing_sick_is_wrong_where_no_demotion_is_allowed() -> None:
    seen = noted(b1=[HEALTHY, SLOW, HEALTHY], b2=[HEALTHY])
    assert NOBODY.reached(seen)
    assert wrong(NOBODY, seen) == ["broker 1 was called Sick (StorageSlow)"]


def test_a_word_on_the_way_may_be_allowed_and_no_other() -> None:
    on_the_way = Expected((1,), ("Healthy",), passing=("Sick/StorageSlow",))
    assert wrong(on_the_way, noted(b1=[HEALTHY, SLOW, HEALTHY])) == []
    assert wrong(on_the_way, noted(b1=[HEALTHY, CUT, HEALTHY])) == ["broker 1 was called Sick (ExternallyUnreachable)"]
    assert wrong(on_the_way, noted(b1=[HEALTHY], b2=[SLOW, HEALTHY])) == ["broker 2 was called Sick (StorageSlow)"]


def test_before_metadata_was_seen_nothing_counts_as_leaderless() -> None:
    seen = Account()
    seen.hear(0.0, 1, CUT, demoted=True)
    assert not SICK.reached(seen)
    assert wrong(SICK, seen) == ["broker 1 still leads ?"]


def test_a_broker_may_be_down_where_no_demotion_is_allowed() -> None:
    assert wrong(NOBODY, noted(b1=[HEALTHY, Word("Down", "Unreachable"), HEALTHY], b2=[HEALTHY])) == []


def test_a_demotion_is_wrong_where_none_is_allowed() -> None:
    seen = noted(b1=[HEALTHY], b2=[HEALTHY], demoted=True)
    assert wrong(NOBODY, seen) == ["demoted without need: 1"]


def test_a_verdict_that_was_there_all_along_took_no_seconds() -> None:
    assert NOBODY.seconds_to_verdict(noted(b1=[HEALTHY], b2=[HEALTHY])) is None


def test_a_page_counts_only_where_all_must_be_quiet() -> None:
    seen = noted(b1=[HEALTHY], b2=[HEALTHY])
    seen.page("DemotionBlocked: half of the brokers")
    assert wrong(NOBODY, seen) == []
    assert wrong(Expected((1, 2), ("Healthy",), quiet=True), seen) == ["paged: DemotionBlocked: half of the brokers"]


def test_a_demotion_that_must_stay_is_missed_at_the_first_word_against_it() -> None:
    stays = Expected((1,), ("Unknown",), Demotion.STAYS, passing=("Sick",))
    seen = Account()
    seen.hear(0.0, 1, CUT, demoted=True)
    seen.hear(5.0, 1, Word("Unknown", "NoEvidence"), demoted=True)
    seen.see(5.0, {1: 0}, [1])
    assert stays.reached(seen)
    assert wrong(stays, seen) == []
    seen.hear(6.0, 1, Word("Unknown", "NoEvidence"), demoted=False)
    assert wrong(stays, seen) == ["broker 1 was promoted while nothing was known"]


def test_a_broker_that_kafka_itself_takes_the_leaders_from_needs_no_demotion() -> None:
    down = Expected((1,), ("Down",), leaderless=True)
    seen = noted(b1=[HEALTHY, Word("Down", "BrokerDown")], b2=[HEALTHY])
    assert not down.reached(seen)
    seen.see(9.0, {1: 0, 2: 20}, [])
    assert down.reached(seen)
    assert wrong(down, seen) == []
    assert down.seconds_to_zero_leaders(seen) == 9.0


def test_a_broker_of_which_nothing_is_said_is_wrong() -> None:
    assert wrong(NOBODY, noted(b1=[HEALTHY])) == ["broker 2 is called nothing, not Healthy"]


def test_an_expectation_reads_as_a_person_would_say_it() -> None:
    assert str(SICK) == "Sick (ExternallyUnreachable), demoted"
    assert str(Expected((1,), ("Healthy", "Unknown"), quiet=True)) == "Healthy or Unknown, not demoted, no page"


def test_a_dead_broker_may_be_down_and_must_be() -> None:
    expected = Expected((1,), ("Sick/ExternallyUnreachable",), Demotion.MUST, dead=(3,))
    seen = noted(b1=[HEALTHY, CUT], b3=[HEALTHY, Word("Down", "Fenced")], demoted=True)
    seen.see(3.0, {1: 0, 2: 20, 3: 0}, [1])
    assert expected.reached(seen)
    assert wrong(expected, seen) == []
    alive = noted(b1=[HEALTHY, CUT], b3=[HEALTHY], demoted=True)
    alive.see(3.0, {1: 0, 2: 20}, [1])
    assert not expected.reached(alive)
    assert wrong(expected, alive) == ["broker 3 is dead and is called Healthy (SignalsPassing)"]
