"""News for people: posted, counted where it recurs, bounded where it flaps, and in the log where it is refused."""

from __future__ import annotations

import pytest
import structlog

from bellwether.adapters.kubernetes.api_client import EVENTS, Object
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.objects.event_recorder import DISTINCT, PER_MINUTE, SERIES_SECONDS, EventWriter
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi


@pytest.fixture
def writer(api: MemoryApi, clock: ManualClock) -> EventWriter:
    return EventWriter(api, clock, "pod-1")


def about(broker: int = 1) -> Object:
    return {**api_objects.health(broker), "apiVersion": "bellwether.dev/v1alpha1"}


def series(api: MemoryApi) -> list[tuple[str, int]]:
    """Notes with how often each was posted, in order of the notes."""
    return sorted((e["note"], e.get("series", {}).get("count", 1)) for e in api.all(EVENTS))


def test_equal_events_are_posted_once(api: MemoryApi, writer: EventWriter) -> None:
    assert writer.post(about(), "Demoted", "broker 1 is demoted")
    assert not writer.post(about(), "Demoted", "broker 1 is demoted")
    assert series(api) == [("broker 1 is demoted", 1)]


def test_repeated_events_are_counted_and_posted_once(api: MemoryApi, writer: EventWriter, clock: ManualClock) -> None:
    for _ in range(3):
        writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
        clock.advance(SERIES_SECONDS)
    assert series(api) == [("broker 1 is demoted", 3)]
    (event,) = api.all(EVENTS)
    assert event["series"]["lastObservedTime"] > event["eventTime"]


def test_what_recurs_within_seconds_is_counted_once_they_are_over(
    api: MemoryApi, writer: EventWriter, clock: ManualClock
) -> None:
    for _ in range(40):
        writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    assert api.writes == [api.writes[0]]
    writer.flush()
    assert series(api) == [("broker 1 is demoted", 1)]
    clock.advance(SERIES_SECONDS)
    writer.flush()
    assert series(api) == [("broker 1 is demoted", 40)]
    api.writes.clear()
    clock.advance(SERIES_SECONDS)
    writer.flush()
    assert api.writes == [], "once it is written, rest"


def test_after_ten_minutes_an_event_is_posted_again(api: MemoryApi, writer: EventWriter, clock: ManualClock) -> None:
    writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    clock.advance(601)
    assert writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    assert len(api.all(EVENTS)) == 2


LOG = "the operator's log has each"


def test_changing_messages_of_one_reason_become_one_series(
    api: MemoryApi, writer: EventWriter, clock: ManualClock
) -> None:
    for n in range(30):
        writer.post(about(), "StorageSlow", f"{100 + n} ms", again=True)
        clock.advance(SERIES_SECONDS)
    noted = series(api)
    assert len(noted) == DISTINCT + 1
    assert noted[-1] == (f"{100 + DISTINCT} ms (counted with others of this reason: {LOG})", 30 - DISTINCT)


def test_other_brokers_and_reasons_get_events_of_their_own(api: MemoryApi, writer: EventWriter) -> None:
    writer.post(about(1), "Demoted", "kept from leading")
    writer.post(about(2), "Demoted", "kept from leading")
    writer.post(about(1), "Promoted", "kept from leading")
    writer.post(about(1), "Demoted", "kept from leading", warning=True)
    assert len(api.all(EVENTS)) == 4


def test_a_policy_whose_brokers_all_flap_stays_within_its_budget(
    api: MemoryApi, writer: EventWriter, clock: ManualClock
) -> None:
    for second in range(120):
        for broker in range(2 * PER_MINUTE):
            writer.post(about(broker), f"Reason{second}", "down", again=True, budget="default/main")
        clock.advance(1)
    assert 2 * PER_MINUTE <= len(api.writes) <= 3 * PER_MINUTE


def test_one_policys_flapping_leaves_the_others_theirs(writer: EventWriter) -> None:
    for broker in range(2 * PER_MINUTE):
        writer.post(about(broker), "Down", "down", budget="default/main")
    assert not writer.post(about(5000), "Down", "down", budget="default/main")
    assert writer.post(about(6000), "Down", "down", budget="default/other")


def test_dropped_events_are_logged_once_and_counted(writer: EventWriter, clock: ManualClock) -> None:
    with structlog.testing.capture_logs() as logs:
        for broker in range(2 * PER_MINUTE):
            writer.post(about(broker), "Down", "down", budget="default/main")
        clock.advance(60)
        writer.post(about(5000), "Down", "down", budget="default/main")
    assert [entry["event"] for entry in logs] == [
        "events_throttled",
        "events_resumed",
    ]
    assert logs[1]["skipped"] == PER_MINUTE


def test_a_refused_event_is_logged_and_posted_later(api: MemoryApi, writer: EventWriter) -> None:
    api.refuse("create", EVENTS, Terminal("user ann lacks the verb 'create' on events"))
    with structlog.testing.capture_logs() as logs:
        assert not writer.post(about(), "Demoted", "broker 2 is demoted")
    assert [(entry["reason"], entry["error"]) for entry in logs] == [
        ("Demoted", "user ann lacks the verb 'create' on events")
    ]
    api.refuse("create", EVENTS, None)
    assert writer.post(about(), "Demoted", "broker 2 is demoted")
    assert series(api) == [("broker 2 is demoted", 1)]


@pytest.mark.parametrize("error", [NotFound("expired"), Terminal("no patch"), Transient("away")])
def test_a_series_that_cannot_be_written_is_posted_again(
    api: MemoryApi, writer: EventWriter, clock: ManualClock, error: Terminal | Transient
) -> None:
    writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    api.refuse("merge", EVENTS, error)
    clock.advance(SERIES_SECONDS)
    assert not writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    assert writer.post(about(), "Demoted", "broker 1 is demoted", again=True)
    assert len(api.all(EVENTS)) == 2


def test_objects_that_come_and_go_leave_nothing_behind(writer: EventWriter, clock: ManualClock) -> None:
    for broker in range(2 * PER_MINUTE):
        writer.post(about(broker), "Demoted", "it is demoted")
        clock.advance(10)
    assert len(writer._budgets) <= 10
    assert len(writer._series) <= 61
