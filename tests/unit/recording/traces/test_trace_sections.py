from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.broker_identity import UNMATCHED, Pod
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.signals import (
    Harm,
    ListenerReading,
    Override,
    OverrideState,
    Purpose,
    Reading,
    Signal,
    UnreachableCause,
)
from bellwether.recording.traces.trace_lines import UnreadableTrace
from bellwether.recording.traces.trace_sections import (
    DEMOTED,
    OVERRIDES,
    PODS,
    RETURNING,
    aged,
    heard_section,
    read_signals,
    signals_section,
)

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
FIGURES = st.none() | st.floats(0, 1e6)
HARM = st.none() | st.builds(Harm, st.floats(0, 600), st.floats(0, 1), st.just(T0))
LISTENERS = st.builds(
    ListenerReading, st.sampled_from(["A", "B"]), st.sampled_from(Reading), HARM, st.sampled_from(UnreachableCause)
)
MOMENTS = st.none() | st.integers(0, 50)


@st.composite
def signals(draw: st.DrawFn) -> list[Signal]:
    kinds = st.sampled_from(["ExternalReachability", "StorageLatency", "Custom"])
    keys = draw(st.sets(st.tuples(st.integers(0, 3), kinds, st.sampled_from(["a", "zone-b.1"])), max_size=8))
    return [
        Signal(
            broker,
            kind,
            source,
            draw(st.sampled_from(Reading)),
            T0 + timedelta(seconds=draw(st.integers(-90, 90))),
            draw(MOMENTS),
            draw(st.sampled_from(Reading)),
            draw(FIGURES),
            draw(st.text(max_size=9)),
            draw(FIGURES),
            draw(FIGURES),
            draw(HARM),
            listeners=tuple(draw(st.lists(LISTENERS, max_size=2))),
        )
        for broker, kind, source in sorted(keys)
    ]


def as_json(section: object) -> dict[str, object]:
    """What a file makes of a section."""
    found: dict[str, object] = json.loads(json.dumps(section, allow_nan=False))
    return found


@given(signals())
def test_signals_are_read_back_with_ages(found: list[Signal]):
    said, heard = as_json(signals_section(found)), as_json(heard_section(found, 60.0))
    assert list(aged(read_signals(said), heard, 60.0)) == found


@given(signals(), st.integers(0, 100))
def test_ages_grow_with_the_moment_that_they_are_asked_for(found: list[Signal], later: int):
    said, heard = as_json(signals_section(found)), as_json(heard_section(found, 60.0))
    older = [s if s.age_seconds is None else replace(s, age_seconds=s.age_seconds + later) for s in found]
    assert list(aged(read_signals(said), heard, 60.0 + later)) == older


def test_one_prober_is_one_moment_however_many_brokers_it_sees():
    seen = [Signal(b, "ExternalReachability", "a", Reading.PASSING, T0, 1.5) for b in range(1000)]
    assert heard_section(seen, 10.0) == {"ExternalReachability/a": 8.5}


def test_a_sign_of_life_changes_nothing_but_the_moment():
    seen = [Signal(1, "ExternalReachability", "a", Reading.PASSING, T0, 1.5)]
    assert signals_section(seen) == signals_section([replace(seen[0], age_seconds=0.0)])


def test_entry_of_earlier_prober_has_its_own_moment():
    seen = [Signal(b, "ExternalReachability", "a", Reading.PASSING, T0, None if b == 2 else 1.0) for b in (1, 2, 3)]
    heard = heard_section(seen, 10.0)
    assert heard == {"ExternalReachability/a": 9.0, "ExternalReachability/a#2": "never"}
    assert [s.age_seconds for s in aged(read_signals(signals_section(seen)), heard, 12.0)] == [3.0, None, 3.0]


def test_what_is_no_number_is_left_out():
    seen = [Signal(1, "Prometheus", "rule", Reading.FAILING, T0, value=float("nan"))]
    assert as_json(signals_section(seen))
    assert read_signals(signals_section(seen))[0].value is None


def test_overrides_are_read_back():
    found = (
        Override(1, OverrideState.DEMOTED, "disk replaced (ann)", T0),
        Override(2, OverrideState.PROMOTED),
        Override(3, OverrideState.DEMOTED, "new disk", T0, purpose=Purpose.MAINTENANCE, accept_unavailable_writes=True),
    )
    given = {one.broker: one for one in found}
    assert OVERRIDES.read(as_json(OVERRIDES.write(given))) == given


def test_pods_are_read_back():
    found = {0: Pod("kafka-0"), 1: Pod("kafka-1", ready=False), 2: UNMATCHED, 12: Pod("kafka-12", leaving=True)}
    assert PODS.read(as_json(PODS.write(found))) == found


def test_demotions_are_read_back():
    found = {
        3: DemotedBroker(3, Cause.SIGNALS, "StorageSlow", "slow", T0, "StorageLatency"),
        4: DemotedBroker(4, Cause.MAINTENANCE, "InMaintenance", "", T0, drained_since=T0),
    }
    section = as_json(DEMOTED.write(found))
    assert DEMOTED.read(section) == found
    del section["4"]["message"]  # type: ignore[attr-defined]
    assert DEMOTED.read(section) == found


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), MOMENTS, st.sampled_from(RestorationTrigger)), max_size=4)
)
def test_ways_back_are_read_back(drawn: list[tuple[int, int, int | None, RestorationTrigger]]):
    found = {
        b: ReturningBroker(b, share, T0, T0 + timedelta(minutes=m or 0), coming, share / 3 if m else None)
        for b, share, m, coming in drawn
    }
    assert RETURNING.read(as_json(RETURNING.write(found))) == found


def test_the_usual_way_back_leaves_out_where_it_comes_from():
    section = RETURNING.write(
        {1: ReturningBroker(1, 10, T0, T0), 2: ReturningBroker(2, 50, T0, T0, RestorationTrigger.RESTARTED)}
    )
    assert [row.get("coming") for row in section.values()] == [None, "Restarted"]


MOMENT = "2026-11-21T09:00:00Z"
SIGNAL = {"reading": "Passing", "since": MOMENT}
WAVE = {"share": 10, "since": MOMENT, "wavedAt": MOMENT}


@pytest.mark.parametrize(
    ("read", "row", "problem"),
    [
        (RETURNING.read, {**WAVE, "share": 100}, "a way back .*: 1.share is 100: expected less than 100"),
        (RETURNING.read, {**WAVE, "cutoff": 101}, "cutoff is 101"),
        (RETURNING.read, {**WAVE, "coming": "Teleported"}, "coming is 'Teleported'"),
        (RETURNING.read, {**WAVE, "wavedAt": 4}, "wavedAt is 4"),
        (PODS.read, {"ready": True}, "a pod .*: .*name is missing"),
        (PODS.read, {"name": "kafka-1", "ready": "yes"}, "ready is 'yes'"),
        (OVERRIDES.read, {"state": "Exiled"}, "an override .*: .*state is 'Exiled'"),
        (DEMOTED.read, {"reason": "r", "message": "", "since": MOMENT}, "a demotion .*: .*cause is missing"),
    ],
)
def test_damaged_row_of_a_broker_is_refused(read: Callable[[Any], Any], row: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnreadableTrace, match=f"{problem}.*"):
        read({"1": row})
    with pytest.raises(UnreadableTrace):
        read({"x": row})


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"reading": "Passing"},
        {**SIGNAL, "reading": "Dancing"},
        {**SIGNAL, "latency": "fast"},
        {**SIGNAL, "since": 4},
        {**SIGNAL, "since": "9999-11-21T09:00:00Z"},
        {**SIGNAL, "harm": {"lost": 1, "share": 1.5, "since": MOMENT}},
        {**SIGNAL, "harm": {"lost": -1, "share": 1, "since": MOMENT}},
        {**SIGNAL, "listeners": [{"reading": "Failing"}]},
        {**SIGNAL, "listeners": 4},
        [],
        "Passing",
    ],
    ids=str,
)
def test_damaged_signal_is_refused(row: object) -> None:
    with pytest.raises(UnreadableTrace, match="a signal in the trace is damaged"):
        read_signals({"1": {"ExternalReachability/a": row}})
