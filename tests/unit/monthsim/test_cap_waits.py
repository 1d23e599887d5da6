"""Harm that the cap forbids to cure is left out for every rule; what a rule wastes of the cap is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from monthsim.cap_waits import cap_waits, counted, outside
from monthsim.regret import WELL_SECONDS, Cured, Stretch
from monthsim.relief import Cure

LONG = [Stretch(1000.0, 5000.0, 1.0)]
LATER = [Stretch(2000.0, 9000.0, 1.0)]


def six(faults: Mapping[int, list[Stretch]]) -> dict[int, list[Stretch]]:
    """Six brokers in three racks, broker b in rack b % 3; the cap is one broker."""
    return {b: faults.get(b, []) for b in range(6)}


def test_the_second_fault_waits_until_the_broker_of_the_first_has_been_well_for_a_minute() -> None:
    waits = cap_waits(six({0: LONG, 1: LATER}))
    assert waits[0] == []
    assert waits[1] == [(2000.0, 5000.0 + WELL_SECONDS)]
    assert outside(LATER, waits[1]) == [Stretch(5060.0, 9000.0, 1.0)]


def test_a_fault_that_ends_while_it_waits_is_left_out_whole_and_takes_no_slot() -> None:
    waits = cap_waits(six({0: LONG, 1: [Stretch(2000.0, 3000.0, 1.0)], 2: [Stretch(5100.0, 6000.0, 1.0)]}))
    assert outside([Stretch(2000.0, 3000.0, 1.0)], waits[1]) == []
    assert waits[2] == []


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({0: LONG, 3: LATER}, id="brokers of one rack are one failure"),
        pytest.param({0: [Stretch(1000.0, 1002.0, 1.0)], 1: [Stretch(1001.0, 2000.0, 1.0)]}, id="not worth a move"),
        pytest.param({0: LONG, 1: [Stretch(5100.0, 9000.0, 1.0)]}, id="the first one has been well for a minute"),
    ],
)
def test_no_broker_waits(faults: Mapping[int, list[Stretch]]) -> None:
    assert [w for waits in cap_waits(six(faults)).values() for w in waits] == []


def test_a_demotion_during_a_wait_counts_from_its_end_if_anything_is_left_to_cure() -> None:
    waits, held = [(2000.0, 5060.0)], Cure.HELD
    left = [Stretch(5060.0, 9000.0, 1.0)]
    assert counted([(1500.0, held), (2500.0, held)], left, waits) == [(1500.0, held), (5060.0, held)]
    assert counted([(2500.0, held)], [], waits) == []


def test_a_fault_that_only_a_hold_cures_waits_until_every_other_broker_is_well() -> None:
    trailing = [Stretch(2000.0, 9000.0, 1.5, Cured(1.5))]
    assert cap_waits(six({0: LONG, 3: trailing}))[3] == [(2000.0, 5000.0 + WELL_SECONDS)]
