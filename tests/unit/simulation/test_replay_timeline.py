from __future__ import annotations

from datetime import UTC, datetime

from bellwether.core.signals import Reading, SignalType
from bellwether.simulation.replay_run import Replay
from bellwether.simulation.replay_timeline import Row, Timeline
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.recordings import Watched
from testkit.values.builders import site

AT = datetime(2026, 11, 21, 9, 5, 7, 250000, tzinfo=UTC)


def test_a_row_is_a_line_for_a_person_and_a_document_for_a_machine():
    row = Row(AT, "demoted", "is demoted, Signals StorageSlow", 2)
    assert_wording(str(row))
    assert row.document() == {
        "at": "2026-11-21T09:05:07.250Z",
        "what": "demoted",
        "broker": 2,
        "text": "is demoted, Signals StorageSlow",
    }
    assert str(Row(AT, "moved", "3 leaders moved")) == "09:05:07 3 leaders moved"
    assert "broker" not in Row(AT, "moved", "3 leaders moved").document()


def test_lost_and_restored_connections_of_the_recorder_are_listed():
    timeline = Timeline()
    timeline.recorded(AT, {"away": {"Kafka": "no broker answers"}}, {"away": {"Kafka": "no broker answers"}})
    timeline.recorded(AT, {"away": {"Kafka": None}}, {"away": {}})
    assert_wording([r.text for r in timeline.rows])


def play(watched: Watched) -> Timeline:
    return Replay(watched.header).play(watched.kept.instants)


def test_brokers_above_the_cap_are_listed_once_as_held():
    watched = Watched(site(6, {"orders": 12}), api_objects.policy(mode="Enforce", demotion={"maxBrokers": 1}))
    for second in range(20):
        for broker in range(1, 7):
            bad = broker in (1, 2) and second > 4
            watched.site.signals.say(broker, Reading.FAILING if bad else Reading.PASSING)
        watched.second()
    rows = [r for r in play(watched).rows if r.what in ("held", "demoted")]
    assert sorted((r.what, r.broker) for r in rows) == [("demoted", 1), ("held", 2)]
    assert next(r for r in rows if r.what == "held").text.startswith("is held, CapReached: ")


def test_a_follower_that_delays_acks_all_is_listed_once():
    watched = Watched(site(3, {"orders": 6}))
    for second in range(20):
        for broker in (1, 2, 3):
            watched.site.signals.say(broker, Reading.PASSING)
            slow = broker == 3 and second > 4
            watched.site.signals.say(
                broker,
                Reading.FAILING if slow else Reading.PASSING,
                type=SignalType.STORAGE_LATENCY,
                sources=[f"broker-{broker}"],
                control=Reading.UNKNOWN,
                latency_seconds=0.2 if slow else 0.001,
            )
        watched.second()
    rows = [r for r in play(watched).rows if r.what == "holds back"]
    assert [r.broker for r in rows] == [3]
    assert rows[0].text.startswith("delays acks=all: ")
