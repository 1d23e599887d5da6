import numpy as np

from monthsim.assumptions import Assumptions
from monthsim.episodes import Episode, Kind, Month, Path
from monthsim.injected import cut, slow_disk
from monthsim.noise import frozen, slow_syncs
from monthsim.reconciles import Demotion
from monthsim.regret import MOVE_SECONDS
from monthsim.scoring import STORAGE, score

CUT = cut(Kind.EXTERNAL_CUT, 1000.0, 600.0, (1,), Path.REFUSED)
SLOW = slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.2)
UNREACHABLE = "ExternallyUnreachable"


def month(*episodes: Episode) -> Month:
    return Month(3, episodes, (0.001,) * 3, np.zeros((4, 3)), (0.02,) * 3, Assumptions(), (1, 3, 0))


def test_a_demotion_during_a_fault_finds_it_with_its_delay() -> None:
    found = score(month(CUT), [Demotion(1005.0, 1, UNREACHABLE)])
    assert found.false == []
    assert found.broker_months == 3
    assert found.faults[Kind.EXTERNAL_CUT].delays == [5.0]


def test_demotion_of_another_broker_is_false_and_fault_missed() -> None:
    found = score(month(CUT), [Demotion(1005.0, 2, UNREACHABLE)])
    assert [(f.broker, f.seed) for f in found.false] == [(2, (1, 3, 0))]
    assert (found.faults[Kind.EXTERNAL_CUT].injected, found.faults[Kind.EXTERNAL_CUT].found) == (1, 0)


def test_demotion_shortly_after_fault_is_late_and_not_false() -> None:
    found = score(month(CUT), [Demotion(1605.0, 1, UNREACHABLE)])
    assert found.false == []
    assert found.faults[Kind.EXTERNAL_CUT].found == 0
    assert len(score(month(CUT), [Demotion(1700.0, 1, UNREACHABLE)]).false) == 1


def test_what_only_a_prober_suffers_excuses_nothing_and_is_named() -> None:
    outage = Episode(Kind.VANTAGE_OUTAGE, 500.0, 506.0, (0, 1, 2))
    found = score(month(outage), [Demotion(505.0, 0, UNREACHABLE)])
    assert found.causes == {"vantage cut off": 1}
    assert score(month(), [Demotion(505.0, 0)]).causes == {"nothing": 1}


def test_a_move_while_only_syncs_are_slow_is_spurious_and_costs_a_sync_of_each_leader() -> None:
    slow = month(slow_syncs(500.0, 0, Assumptions(), np.random.default_rng(1)))
    found = score(slow, [Demotion(505.0, 0, STORAGE)])
    assert found.causes == {"slow syncs": 1}
    assert found.with_agent.lost > MOVE_SECONDS
    assert found.with_agent.least == 0.0


def test_a_pause_of_the_broker_is_harm_to_its_clients() -> None:
    assert score(month(frozen(Kind.GC_PAUSE, 500.0, 6.0, 0)), [Demotion(505.0, 0, UNREACHABLE)]).false == []


def test_demotion_for_wrong_evidence_does_not_find_fault() -> None:
    assert score(month(SLOW), [Demotion(1005.0, 1, UNREACHABLE)]).faults[Kind.DISK_SLOW].found == 0
    assert score(month(SLOW), [Demotion(1005.0, 1, STORAGE)]).faults[Kind.DISK_SLOW].found == 1
    assert score(month(CUT), [Demotion(1005.0, 1, STORAGE)]).faults[Kind.EXTERNAL_CUT].found == 0


def test_a_fault_that_is_held_back_is_missed_and_counted_as_held() -> None:
    tally = score(month(CUT), [], held=[Demotion(1010.0, 1, "CapReached")]).faults[Kind.EXTERNAL_CUT]
    assert (tally.injected, tally.found, tally.held) == (1, 0, 1)


def test_broker_that_was_demoted_already_is_found_without_delay() -> None:
    tally = score(month(CUT), [Demotion(950.0, 1, UNREACHABLE)]).faults[Kind.EXTERNAL_CUT]
    assert (tally.found, tally.delays) == (1, [])


def test_scores_add_up() -> None:
    whole = score(month(CUT), [Demotion(1005.0, 1, UNREACHABLE)])
    whole.add(score(month(CUT), [Demotion(1007.0, 1, UNREACHABLE), Demotion(9000.0, 0)]))
    assert whole.broker_months == 6
    assert whole.faults[Kind.EXTERNAL_CUT].delays == [5.0, 7.0]
    assert len(whole.false) == 1
