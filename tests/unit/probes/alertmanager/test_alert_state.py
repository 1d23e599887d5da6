from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.api.v1alpha1.status.signal_entries import entry_of
from bellwether.core.signals import Reading
from bellwether.probes.alertmanager.alert_state import INSTANCE_LIMIT, AlertState, carried_on

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


def firing(*fingerprints: str, at: float = 0.0) -> AlertState:
    known = AlertState(NOW)
    for one in fingerprints:
        known = known.fires(one, "the disk is slow", at, NOW)
    return known


def carried(known: AlertState, at: float = 0.0) -> AlertState:
    """What the next process makes of it, by way of the entry that was written."""
    return carried_on(entry_of(known.signal(2, "DiskSlow"), "uid", 1, "lease").to_core(2, None), at)


def test_an_alert_fires_while_any_of_its_instances_does() -> None:
    two = firing("a", "b")
    one = two.resolved("a", LATER)
    assert (two.reading, one.reading, one.since) == (Reading.FAILING, Reading.FAILING, NOW)
    none = one.resolved("b", LATER)
    assert (none.reading, none.since) == (Reading.PASSING, LATER)


def test_the_word_says_which_alert_how_many_and_what_the_alert_says_of_itself() -> None:
    signal = firing("a", "b").signal(2, "DiskSlow")
    assert (signal.type, signal.source, signal.value) == ("Alertmanager", "DiskSlow", 2.0)
    assert signal.message == "DiskSlow fires (2): the disk is slow"
    assert firing("a").resolved("a", NOW).signal(2, "DiskSlow").message == "DiskSlow is resolved"


def test_a_repeated_alert_is_one_instance_and_keeps_the_time_since_when_it_fires() -> None:
    again = firing("a").fires("a", "", 9.0, LATER)
    assert (again.count, again.since) == (1, NOW)
    assert again.signal(2, "DiskSlow").message.endswith("the disk is slow")


def test_a_resolution_of_what_never_fired_passes() -> None:
    assert AlertState(NOW).resolved("a", NOW).reading is Reading.PASSING


@pytest.mark.parametrize("fires", [1, 2])
def test_the_next_process_carries_on_from_the_entry_until_as_many_are_resolved(fires: int) -> None:
    known = carried(firing(*"ab"[:fires]))
    assert (known.reading, known.since, known.count) == (Reading.FAILING, NOW, fires)
    assert known.signal(2, "DiskSlow").message == f"DiskSlow fires ({fires}): the disk is slow"
    for number, one in enumerate("ab"[:fires], 1):
        known = known.resolved(one, LATER).resolved(one, LATER)  # a second Alertmanager says so, too
        assert known.count == fires - number
    assert known.reading is Reading.PASSING


def test_an_instance_that_is_told_of_again_is_not_counted_twice() -> None:
    known = carried(firing("a", "b")).fires("a", "", 1.0, LATER)
    assert known.count == 2
    assert known.resolved("a", LATER).reading is Reading.FAILING
    assert known.resolved("a", LATER).resolved("b", LATER).reading is Reading.PASSING


def test_a_resolved_alert_carries_on_as_resolved() -> None:
    assert carried(firing("a").resolved("a", LATER)).reading is Reading.PASSING


def test_what_is_neither_repeated_nor_resolved_for_long_is_unknown_and_not_passing() -> None:
    known = firing("a", at=100.0)
    assert known.expired(100.0, LATER) == known
    lost = known.expired(100.1, LATER)
    assert (lost.reading, lost.since) == (Reading.UNKNOWN, LATER)
    assert lost.signal(2, "DiskSlow").value is None
    assert carried(known, at=100.0).expired(100.1, LATER).reading is Reading.UNKNOWN
    assert lost.fires("a", "", 200.0, LATER).reading is Reading.FAILING


def test_an_instance_that_is_still_repeated_keeps_the_alert_firing_when_another_has_expired() -> None:
    known = firing("a", at=1.0).fires("b", "", 100.0, NOW).expired(50.0, LATER)
    assert (known.reading, known.count) == (Reading.FAILING, 1)


def test_more_instances_than_the_limit_take_no_more_memory() -> None:
    known = firing(*(f"f{n}" for n in range(INSTANCE_LIMIT + 50)))
    assert len(known.received) == INSTANCE_LIMIT
    for n in range(10_000):
        known = known.resolved(f"g{n}", NOW)
    assert (known.count, len(known.over)) == (INSTANCE_LIMIT, 0)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=40))
def test_without_a_restart_it_fires_exactly_while_a_firing_instance_is_not_resolved(
    steps: list[tuple[bool, str]],
) -> None:
    known, truth = AlertState(NOW), set[str]()
    for fires, one in steps:
        known = known.fires(one, "", 0.0, NOW) if fires else known.resolved(one, NOW)
        truth = truth | {one} if fires else truth - {one}
        assert known.count == len(truth)
        assert (known.reading is Reading.FAILING) == bool(truth)
