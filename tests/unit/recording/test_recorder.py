"""The recorder: it writes what has changed, says what it cannot see, and changes nothing."""

from __future__ import annotations

import threading

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from bellwether.recording.recorder import METADATA_SECONDS, Metadata
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.recordings import Watched
from testkit.values.builders import cluster, returning, site


def watched(seconds: int = 3) -> Watched:
    made = Watched(site(3, {"orders": 6}))
    run(made, seconds)
    return made


def run(made: Watched, seconds: int) -> None:
    for _ in range(seconds):
        for broker in (1, 2, 3):
            made.site.signals.say(broker, Reading.PASSING)
        made.second()


def test_the_first_instant_holds_everything():
    first = watched(1).kept.instants[0]
    assert first.at == 0
    names = "policy", "cluster", "demoted", "signals", "heard", "followers", "overrides", "said", "away"
    assert set(first.news) == set(names)
    assert set(first.news["signals"]) == {"1", "2", "3"}
    assert "kafka" not in first.news["policy"]


def test_while_all_is_well_only_signs_of_life_are_written():
    made = watched(10)
    assert [set(i.news) for i in made.kept.instants[3:]] == [{"heard"}] * 7
    assert max(len(i.line()) for i in made.kept.instants[3:]) < 200


def test_it_writes_nothing_to_the_api():
    made = watched()
    writes = list(made.api.writes)
    made.recorder.look()
    assert made.api.writes == writes


def test_unreachable_api_is_recorded():
    made = watched()
    made.api.away = True
    made.site.clock.advance(1)
    made.recorder.look()
    assert "not reachable" in made.kept.instants[-1].news["away"]["the Kubernetes API"]
    assert "the Kubernetes API" in made.recorder.trouble
    assert "signals" not in made.kept.instants[-1].news, "the last signals are kept, and age"
    made.api.away = False
    run(made, 6)
    assert made.recorder.trouble == {}
    assert any(i.news.get("away", {}).get("the Kubernetes API", 0) is None for i in made.kept.instants[-6:])


def test_right_that_is_missing_is_named_and_rest_is_recorded():
    made = Watched(site(3, {"orders": 6}))
    made.api.refuse("list", CONFIG_MAPS, Terminal("not allowed to list configmaps"))
    run(made, 3)
    assert_wording(made.kept.instants[0].news["away"])
    assert "signals" in made.kept.instants[0].news


def test_a_policy_that_goes_leaves_its_last_settings():
    made = watched()
    made.api.delete(POLICIES, "default", "main")
    run(made, 7)
    assert "leadershippolicies default/main not found" in made.recorder.trouble["the policy"]
    assert all("policy" not in i.news for i in made.kept.instants[1:])


def test_a_changed_policy_is_news():
    made = watched()
    made.api.merge(POLICIES, "default", "main", {"spec": {"promotion": {"stabilizationSeconds": 5}}})
    run(made, 7)
    assert [i.news["policy"] for i in made.kept.instants[1:] if "policy" in i.news] == [
        {"promotion": {"stabilizationSeconds": 5}}
    ]


def test_a_policy_that_cannot_be_understood_is_named():
    made = watched()
    made.api.merge(POLICIES, "default", "main", {"spec": {"mode": "Dance"}})
    run(made, 7)
    assert "spec.mode" in made.recorder.trouble["the policy"]


def test_a_broker_that_is_gone_is_gone_from_the_trace():
    made = watched()
    made.api.delete(BROKER_HEALTHS, "default", "main-3")
    made.site.clock.advance(1)
    made.recorder.look()
    assert made.kept.instants[-1].news["signals"] == {"3": None}
    assert made.kept.instants[-1].news["said"] == {"3": None}


def test_restorations_are_recorded_while_they_last():
    made = watched()
    assert all("returning" not in i.news for i in made.kept.instants)
    records = ConfigMapRecords(made.api, "default", "main")
    epoch = records.take_over("memory-cluster").epoch
    for message, back in (("wave 1 of 3", {2: returning(2)}), ("wave 2 of 3", {2: returning(2, 50)}), ("", {})):
        records.save(UndoRecord("memory-cluster", epoch, returning=back))
        say_demoted(made, message)
        made.site.clock.advance(1)
        made.recorder.look()
    recorded = [i.news["returning"] for i in made.kept.instants if "returning" in i.news]
    assert [recorded[0]["2"]["share"], recorded[1], recorded[2]] == [10, {"2": {"share": 50}}, None]


def say_demoted(made: Watched, message: str) -> None:
    """The operator writes the state of broker 2 again."""
    health = made.api.get(BROKER_HEALTHS, "default", "main-2")
    conditions = [c for c in health["status"]["conditions"] if c["type"] != "Demoted"]
    said = {"type": "Demoted", "status": "False", "reason": "RestoringInWaves", "message": message}
    health["status"]["conditions"] = [*conditions, said]
    made.api.put(BROKER_HEALTHS, health)


def test_broken_objects_are_skipped():
    made = watched()
    health = api_objects.health(4)
    health["metadata"]["labels"] = {"bellwether.dev/policy": "main"}
    health["status"] = {"signals": [{"type": 5}, "nonsense"], "verdict": {"state": 7}, "conditions": [{}]}
    made.api.put(BROKER_HEALTHS, health)
    bare = api_objects.health(5)
    bare["metadata"]["labels"] = {"bellwether.dev/policy": "main"}
    bare["spec"] = {}
    made.api.put(BROKER_HEALTHS, bare)
    run(made, 2)
    assert set(made.recorder._state["signals"]) == {"1", "2", "3"}


class Reader:
    """A reader of metadata with set answers."""

    def __init__(self, *answers: Cluster | Exception) -> None:
        self.answers = list(answers)
        self.avoided: list[frozenset[int]] = []

    def read(self) -> Cluster:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def avoid(self, brokers: object) -> None:
        self.avoided.append(frozenset(brokers))  # type: ignore[call-overload]


def test_unreadable_metadata_keeps_last_with_reason():
    metadata = Metadata(Reader(cluster(), Transient("no broker answers"), cluster()), ManualClock())  # type: ignore[arg-type]
    metadata.read()
    known = metadata.cluster
    metadata.read()
    assert (metadata.cluster, metadata.trouble) == (known, "no broker answers")
    metadata.read()
    assert metadata.trouble == ""


def test_answer_that_is_overdue_is_said_before_reader_gives_up():
    clock = ManualClock()
    said: list[str] = []

    class Slow(Reader):
        def read(self) -> Cluster:
            for _ in range(4):
                clock.advance(1)
                said.append(metadata.trouble)
            return super().read()

    metadata = Metadata(Slow(cluster()), clock)  # type: ignore[arg-type]
    metadata.read()
    assert metadata.trouble == ""
    assert_wording(said)
    metadata.read()
    assert said[4:] == [""] * 4, "a cluster that always takes so long is not away"


def test_brokers_that_do_not_look_well_are_asked_last():
    made = Watched(site(3, {"orders": 6}))
    for second in range(8):
        for broker in (1, 2, 3):
            made.site.signals.say(broker, Reading.FAILING if broker == 2 and second > 2 else Reading.PASSING)
        made.second()
    assert made.metadata.suspects == {2}


def test_metadata_is_read_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch):
    reader = Reader(cluster())
    metadata = Metadata(reader, ManualClock())  # type: ignore[arg-type]
    waited: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0)
            if len(waited) == 3:
                self.set()
            return self.is_set()

    metadata.follow(Stop())
    assert (waited, len(reader.avoided)) == ([METADATA_SECONDS] * 3, 3)


def test_ages_are_of_one_moment_however_long_a_look_takes():
    made = Watched(site(3, {"orders": 6}))
    clock = made.site.clock
    assert isinstance(clock, ManualClock)
    listing = made.api.list

    def slow(*arguments: object, **named: object) -> object:
        clock.advance(0.3)
        return listing(*arguments, **named)  # type: ignore[arg-type]

    made.api.list = slow  # type: ignore[assignment,method-assign]
    run(made, 4)
    heard = [set(i.news["heard"].values()) for i in made.kept.instants[1:] if "heard" in i.news]
    assert all(len(moments) == 1 for moments in heard)
