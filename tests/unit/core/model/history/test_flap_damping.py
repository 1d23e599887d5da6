"""Flap counters: demotions by signals or for a pod count, those close together, and time makes them forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.model.history.flap_damping import FlapCounter, count_flaps, kept_from_leading
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from testkit.values.builders import after, demoted, record

WINDOW = 100
SICK = {1: True}


def test_the_first_demotion_is_counted_once():
    assert count_flaps({}, {}, SICK, after(5), WINDOW) == {1: FlapCounter(1, after(5))}


def test_a_demotion_that_lasts_is_not_counted_again():
    known = {1: FlapCounter(1, after(0))}
    assert count_flaps(known, SICK, SICK, after(9999), WINDOW) == known


def test_promotion_starts_time_in_which_next_demotion_is_flap():
    assert count_flaps({1: FlapCounter(2, after(0))}, SICK, {}, after(500), WINDOW) == {1: FlapCounter(2, after(500))}


@pytest.mark.parametrize(("seconds", "demotions"), [(100, 4), (101, 1)])
def test_a_demotion_soon_after_the_last_promotion_adds_up(seconds: int, demotions: int):
    known = {1: FlapCounter(3, after(0))}
    assert count_flaps(known, {}, SICK, after(seconds), WINDOW) == {1: FlapCounter(demotions, after(seconds))}


@pytest.mark.parametrize(("seconds", "left"), [(100, {1: FlapCounter(3, after(0))}), (101, {})])
def test_a_broker_that_stays_well_is_forgotten_after_the_window(seconds: int, left: dict[int, FlapCounter]):
    assert count_flaps({1: FlapCounter(3, after(0))}, {}, {}, after(seconds), WINDOW) == left


@pytest.mark.parametrize(
    ("one", "flaps"),
    [
        pytest.param(demoted(), True, id="by signals"),
        pytest.param(replace(demoted(cause=Cause.MAINTENANCE), reason=Reason.RESTARTING), True, id="for its pod"),
        pytest.param(replace(demoted(cause=Cause.MAINTENANCE), reason=Reason.IN_MAINTENANCE), False, id="drained"),
        pytest.param(demoted(cause=Cause.OVERRIDE), False, id="by an override"),
        pytest.param(demoted(cause=Cause.COMMAND), False, id="by a command"),
    ],
)
def test_what_a_person_demotes_does_not_flap(one: DemotedBroker, flaps: bool):
    kept = kept_from_leading(record(None, one), {})
    assert count_flaps({}, {}, kept, after(0), WINDOW) == ({1: FlapCounter(1, after(0))} if flaps else {})


def test_a_window_of_nothing_switches_the_damping_off():
    once = count_flaps({}, {}, SICK, after(0), 0)
    gone = count_flaps(once, SICK, {}, after(0), 0)
    assert count_flaps(gone, {}, SICK, after(0), 0) == {1: FlapCounter(1, after(0))}


def test_brokers_do_not_count_for_one_another():
    counted = count_flaps({1: FlapCounter(3, after(0))}, {}, {2: True}, after(10), WINDOW)
    assert counted == {1: FlapCounter(3, after(0)), 2: FlapCounter(1, after(10))}
