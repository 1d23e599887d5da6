"""A replay asks "what if": other settings, no partitions, a recorder that was late or blind for a while."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reporting.report import Report
from bellwether.core.signals import OverrideState, Reading
from bellwether.recording.recorder import Scope
from bellwether.recording.replay_settings import Setting, setting
from bellwether.recording.traces.anonymization import Anonymity
from bellwether.recording.traces.trace_lines import Header, Instant, UnreadableTrace
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import START
from bellwether.simulation.replay_comparison import differences
from bellwether.simulation.replay_run import Replay
from bellwether.simulation.replay_timeline import Timeline
from testkit.kubernetes import api_objects
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.recordings import Watched
from testkit.values.builders import demoted, site

CUT, RECOVERED, END = 5, 20, 60


def incident(watched: Watched | None = None) -> Watched:
    """Broker 1 is cut off for 15 seconds."""
    watched = watched or Watched(site(3, {"orders": 6}))
    for second in range(END + 1):
        for broker in (1, 2, 3):
            cut = broker == 1 and CUT <= second < RECOVERED
            watched.site.signals.say(broker, Reading.FAILING if cut else Reading.PASSING)
        watched.second()
    return watched


def seconds_of(timeline: Timeline, what: str, broker: int | None = None) -> list[int]:
    return [int((r.at - START).total_seconds()) for r in timeline.rows if (r.what, r.broker) == (what, broker)]


def play(watched: Watched, *changes: str) -> Timeline:
    chosen: list[Setting] = [setting(text) for text in changes]
    return Replay(watched.header, None, chosen).play(watched.kept.instants)


def test_another_stabilization_promotes_at_another_time():
    watched = incident()
    first, second = (seconds_of(play(watched, f"promotion.stabilizationSeconds={n}"), "promoted", 1) for n in (10, 25))
    assert (first, second) == ([RECOVERED + 10], [RECOVERED + 25])


def test_a_dwell_may_end_between_two_seconds():
    watched = Watched(site(3, {"orders": 6}))
    for second in range(END):
        for broker in (1, 2, 3):
            watched.site.signals.say(broker, Reading.FAILING if broker == 1 and second >= CUT else Reading.PASSING)
        watched.second()
    late = timedelta(seconds=0.4)
    instants = [Instant(i.at + 0.4, i.wall + late, i.news) for i in watched.kept.instants if i.at <= CUT]
    instants.append(Instant(END, watched.kept.instants[-1].wall, {}))
    timeline = Replay(watched.header).play(instants)
    sick, gone = (next(r.at for r in timeline.rows if r.broker == 1 and text in r.text) for text in ("Sick", "demoted"))
    assert abs((gone - sick).total_seconds() - 1) < 0.01, "spec.demotion.dwellSeconds"


def test_observing_says_what_it_would_have_done():
    timeline = play(incident(), "mode=Observe")
    assert seconds_of(timeline, "would demote", 1) == [CUT + 1]
    assert seconds_of(timeline, "demoted", 1) == seconds_of(timeline, "moved") == []


def test_without_partitions_the_verdicts_are_the_same():
    whole = incident()
    bare = incident(Watched(site(3, {"orders": 6}), scope=Scope(partitions=False)))
    assert "orders" not in "".join(i.line() for i in bare.kept.instants)
    timeline = Replay(Header("main", "default", START, partitions=False)).play(bare.kept.instants)
    assert [w for _, w in timeline.replayed] == [w for _, w in play(whole).replayed]
    assert seconds_of(timeline, "moved") == []


def test_without_a_plan_verdicts_are_the_same_without_moves():
    watched = incident()
    judged = Replay(watched.header, plan=False).play(watched.kept.instants)
    assert [w for _, w in judged.replayed] == [w for _, w in play(watched).replayed]
    assert seconds_of(judged, "moved") == []


def test_an_anonymous_trace_is_judged_the_same():
    policy = {"vantages": ["vantage-a", "vantage-b"]}
    body = api_objects.policy(mode="Enforce", detection={"externalReachability": policy})
    whole = incident(Watched(site(3, {"orders": 6}), body))
    hidden = incident(Watched(site(3, {"orders": 6}), body, Scope(anonymity=Anonymity("memory-cluster"))))
    text = "".join(i.line() for i in hidden.kept.instants)
    assert [status for status in ("orders", "vantage-a", "memory-cluster", "unreachable from") if status in text] == []
    assert [w for _, w in play(hidden).replayed] == [w for _, w in play(whole).replayed]
    assert differences(play(hidden).said, play(hidden).replayed) == []


def test_a_recording_that_begins_in_the_middle_carries_on():
    watched = Watched(site(3, {"orders": 6}))
    records = ConfigMapRecords(watched.api, "default", "main")
    taken = records.take_over("memory-cluster")
    records.save(UndoRecord("memory-cluster", taken.epoch, {2: demoted(2)}))
    for _ in range(30):
        for broker in (1, 2, 3):
            watched.site.signals.say(broker, Reading.PASSING)
        watched.second()
    timeline = play(watched, "promotion.stabilizationSeconds=10")
    assert len(seconds_of(timeline, "promoted", 2)) == 1
    assert seconds_of(timeline, "demoted", 2) == []


def coming_back() -> tuple[Watched, list[Report | None]]:
    """A recording that begins while broker 1 has two of its eight leaders back, in the first of three waves.

    Then it dies. What it had got back is led by others from then on, until it is well again and its first wave comes.
    """
    order = [[1, 2, 3], [1, 3, 4], [1, 4, 2], [1, 2, 4], [1, 3, 2], [1, 4, 3], [1, 2, 3], [1, 3, 4], [2, 3, 1]]
    waves = {"steps": [20, 60, 100], "pauseSeconds": 600, "skipUpToLeaders": 5, "minDowntimeSeconds": 5}
    body = api_objects.policy(mode="Enforce", promotion={"stabilizationSeconds": 5, "waves": waves})
    made = MemorySite(MemoryCluster(4, cluster_id="memory-cluster"))
    made.cluster.create_topic("orders", assignment=order)
    watched = Watched(made, body)
    for second in range(20):
        for broker in (1, 2, 3, 4):
            made.signals.say(broker, Reading.FAILING if broker == 1 and 2 <= second < 6 else Reading.PASSING)
        watched.show(watched.operator.reconcile())
        made.clock.advance(1)
    keep(watched)
    watched.header = replace(watched.header, started=made.clock.now())
    reports = []
    for second in range(30):
        for broker in (1, 2, 3, 4):
            made.signals.say(broker, Reading.PASSING)
        if second == 5:
            made.cluster.kill(1)
        reports.append(watched.second())
        keep(watched)
    return watched, reports


def keep(watched: Watched) -> None:
    """Let the API show the operator's undo record."""
    assert watched.operator.memory is not None
    records = ConfigMapRecords(watched.api, "default", "main")
    records.save(replace(watched.operator.memory.record, epoch=records.take_over("memory-cluster").epoch))


def reordered(timeline: Timeline) -> int:
    return sum(int(row.text.split()[3]) for row in timeline.rows if row.what == "moved")


def test_a_recording_from_between_two_waves_continues_with_the_wave():
    watched, reports = coming_back()
    first = watched.kept.instants[0].news["returning"]
    assert {b: (row["share"], "coming" in row) for b, row in first.items()} == {"1": (20, False)}
    then = sum(report.result.reordered for report in reports if report is not None)
    assert reordered(play(watched)) == then == 2


def test_an_older_recording_has_no_broker_in_restoration():
    watched, _ = coming_back()
    older = [replace(i, news={k: v for k, v in i.news.items() if k != "returning"}) for i in watched.kept.instants]
    timeline = Replay(watched.header).play(older)
    assert reordered(timeline) == 0
    assert [w for _, w in timeline.replayed] == [w for _, w in play(watched).replayed]


def test_silence_is_unknown_though_nothing_is_recorded_any_more():
    watched = Watched(site(3, {"orders": 6}))
    for _ in range(10):
        for broker in (1, 2, 3):
            watched.site.signals.say(broker, Reading.PASSING)
        watched.second()
    last = watched.kept.instants[-1]
    later = Instant(last.at + 300, last.wall + timedelta(seconds=300), {"away": {"Kafka": "no answer"}})
    timeline = Replay(watched.header).play([*watched.kept.instants, later])
    silent = [
        int((r.at - START).total_seconds()) for r in timeline.rows if "Unknown NoEvidence" in r.text and r.broker == 1
    ]
    assert silent[-1] == int(last.at) + 11, "one second after externalReachability.staleAfterSeconds"
    assert str(timeline.rows[-1]).endswith("the recorder lost Kafka: no answer")


def test_overrides_and_changes_of_the_policy_are_listed():
    watched = Watched(site(3, {"orders": 6}))
    for second in range(12):
        for broker in (1, 2, 3):
            watched.site.signals.say(broker, Reading.PASSING)
        if second == 5:
            watched.site.signals.override(2, OverrideState.DEMOTED, "new disk")
        if second == 8:
            watched.site.signals.lift(2)
        watched.second()
    texts = [row.text for row in play(watched).rows if row.broker == 2]
    assert "gets the override Demoted: new disk" in texts
    assert "its override is removed" in texts
    assert "is demoted, Override OverrideDemoted" in texts


def test_nothing_is_judged_before_the_cluster_is_known():
    watched = incident()
    blind = [Instant(i.at, i.wall, {k: v for k, v in i.news.items() if k != "cluster"}) for i in watched.kept.instants]
    replay = Replay(watched.header)
    assert (replay.play(blind).rows, replay.reconciles) == ([], 0)


def test_while_no_broker_answered_nothing_was_judged():
    watched = incident()
    blind, sees = {"away": {"Kafka": "no broker answered"}}, {"away": {"Kafka": None}}
    instants = []
    for instant in watched.kept.instants:
        if instant.at in (float(CUT - 1), float(CUT + 6)):
            news = blind if instant.at < CUT else sees
            instants.append(Instant(instant.at, instant.wall, {**instant.news, **news}))
        else:
            instants.append(instant)
    timeline = Replay(watched.header).play(instants)
    assert seconds_of(timeline, "verdict", 1)[-2:] == [CUT + 6, RECOVERED]
    assert seconds_of(timeline, "demoted", 1) == [CUT + 7]


def test_a_damaged_section_is_refused():
    watched = incident()
    bad = Instant(99.0, START, {"cluster": {"brokers": {"1": {"fenced": True}, "x": {}}}})
    with pytest.raises(UnreadableTrace, match="the cluster in the trace is damaged"):
        Replay(watched.header).play([*watched.kept.instants, bad])
