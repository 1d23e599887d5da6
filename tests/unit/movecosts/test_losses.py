"""Seconds of lost service are the shares of late records, slice by slice."""

from __future__ import annotations

import pytest

from movecosts.losses import lost_seconds, reached_objective
from quarantines.traffic import Sent

OBJECTIVE = 0.05


def records(*shares: float, error: str = "") -> list[Sent]:
    """Ten records in each slice of 0.1 s, of which a share is late, or fails with ``error``."""
    made = []
    for slice_, share in enumerate(shares):
        for n in range(10):
            due = slice_ * 0.1 + n * 0.01
            bad = n < share * 10
            made.append(Sent(0, b"", due, due + (0.2 if bad and not error else 0.001), error if bad else ""))
    return made


def test_service_that_is_wholly_late_for_half_a_second_loses_half_a_second():
    sent = records(*[0.0] * 5, *[1.0] * 5, *[0.0] * 5)
    assert lost_seconds(sent, 0.0, 1.5, OBJECTIVE) == pytest.approx(0.5)


def test_a_tenth_of_the_records_counts_a_tenth_of_the_time():
    assert lost_seconds(records(*[0.1] * 10), 0.0, 1.0, OBJECTIVE) == pytest.approx(0.1)


def test_records_that_fail_are_lost_however_soon_they_failed():
    assert lost_seconds(records(1.0, 1.0, error="_MSG_TIMED_OUT"), 0.0, 0.2, OBJECTIVE) == pytest.approx(0.2)


def test_a_machine_that_misses_the_objective_before_anything_moves_is_held_to_what_it_reaches():
    sent = records(0.0, 0.2, 1.0)
    assert reached_objective(sent, 0.0, 0.1, OBJECTIVE) == OBJECTIVE
    assert reached_objective(sent, 0.0, 0.2, OBJECTIVE) == pytest.approx(0.4)
    assert reached_objective(sent, 9.0, 10.0, OBJECTIVE) == OBJECTIVE
