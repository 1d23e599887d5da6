"""``bellwether record`` and ``bellwether replay`` as a person meets them: files, mistakes, exit statuses."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.cli.main import main
from bellwether.cli.recording import record as verb
from bellwether.core.signals import Reading
from bellwether.ports.errors import Transient
from bellwether.recording.trace_files import TraceReader, TraceWriter
from bellwether.simulation.memory_kafka import MemoryReader
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.recordings import Watched
from testkit.values.builders import site


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A policy on three brokers, whose recorder reads from memory."""
    made = Watched(site(3, {"orders": 6}))
    for broker in (1, 2, 3):
        made.site.signals.say(broker, Reading.PASSING)
    made.show(made.operator.reconcile())
    made.api.serve_commands(monkeypatch)
    monkeypatch.setattr(verb, "cluster_reader", lambda *_: MemoryReader(made.site.cluster))
    return made


def recorded(tmp_path: Path, cut: bool = True) -> Path:
    """A trace of broker 1 being cut off for ten seconds."""
    made = Watched(site(3, {"orders": 6}))
    path = tmp_path / "incident.jsonl.gz"
    writer = TraceWriter(path, made.header, 10_000_000)
    made.recorder.write = writer.write
    for second in range(30):
        for broker in (1, 2, 3):
            failing = cut and broker == 1 and 5 <= second < 15
            made.site.signals.say(broker, Reading.FAILING if failing else Reading.PASSING)
        made.second()
    writer.close()
    return path


@pytest.mark.parametrize("name", ["incident.jsonl", "incident.jsonl.gz"])
def test_a_recording_ends_with_its_time_and_can_be_replayed(watched: Watched, tmp_path: Path, name: str):
    found = run("record", "--policy", "main", "--output-file", tmp_path / name, "--duration", "1s", "--period", "0.2")
    assert found.exit_code == 0, found.output
    assert f"written to {tmp_path / name}" in found.output
    replayed = run("replay", tmp_path / name)
    assert replayed.exit_code == 0
    assert "default/main, from 20" in replayed.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_recording_is_a_whole_file(watched: Watched, tmp_path: Path, number: signal.Signals):
    path = tmp_path / "incident.jsonl.gz"

    def interrupt() -> None:
        while not path.exists() or path.stat().st_size < 300:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        found = run("record", "--policy", "main", "--output-file", path, "--period", "0.2")
    finally:
        thread.join()
        signal.signal(number, before)
    assert found.exit_code == 0, found.output
    reader = TraceReader(path)
    assert len(list(reader.instants())) >= 1
    assert not reader.truncated


def test_names_are_left_out_when_asked(watched: Watched, tmp_path: Path):
    path = tmp_path / "incident.jsonl"
    found = run(
        "record", "--policy", "main", "--output-file", path, "--duration", "1s", "--anonymize", "--no-partitions"
    )
    assert found.exit_code == 0, found.output
    text = path.read_text()
    assert [w for w in ("orders", "vantage-a", "memory-cluster", '"main"', '"default"') if w in text] == []
    assert TraceReader(path).header.anonymized


def test_no_password_reaches_a_trace(watched: Watched, tmp_path: Path):
    kafka = api_objects.kafka(
        bootstrapServers=["kafka.inside.example:9092"],
        tls={},
        sasl={"mechanism": "PLAIN", "username": "bell", "passwordSecretName": "pw"},
    )
    watched.api.put(POLICIES, api_objects.policy(kafka=kafka))
    path = tmp_path / "incident.jsonl"
    assert run("record", "--policy", "main", "--output-file", path, "--duration", "1s").exit_code == 0
    assert [w for w in ("inside", 'bell"', "sasl", "SecretRef") if w in path.read_text()] == []


def test_anonymity_needs_the_clusters_id(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Away:
        def avoid(self, _: object) -> None:
            pass

        def read(self) -> None:
            raise Transient("no broker answers")

    monkeypatch.setattr(verb, "cluster_reader", lambda *_: Away())
    path = tmp_path / "incident.jsonl"
    refused = run("record", "--policy", "main", "--output-file", path, "--duration", "1s", "--anonymize")
    assert (refused.exit_code, path.exists()) == (1, False)
    assert (
        "--anonymize requires the id of the Kafka cluster, which is not reachable: no broker answers" in refused.output
    )
    plain = run("record", "--policy", "main", "--output-file", path, "--duration", "1s")
    assert plain.exit_code == 0
    assert "continuing without Kafka: no broker answers" in plain.output


def test_a_policy_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    MemoryApi().serve_commands(monkeypatch)
    found = run("record", "--policy", "none", "--output-file", tmp_path / "x.jsonl")
    assert found.exit_code == 1
    assert_wording(found.output)
    assert not (tmp_path / "x.jsonl").exists()


def test_a_replay_tells_the_incident_and_that_it_is_the_same(tmp_path: Path):
    found = run("replay", recorded(tmp_path))
    assert found.exit_code == 0
    assert_wording(found.output)


def test_a_replay_with_other_settings_tells_what_would_have_differed(tmp_path: Path):
    found = run("replay", recorded(tmp_path), "--set", "demotion.dwellSeconds=60")
    assert "is demoted" not in found.output
    assert "differences from the operator's recorded decisions, with other settings:" in found.output


def test_a_replay_takes_its_settings_from_a_policys_file(tmp_path: Path):
    body = api_objects.policy(mode="Enforce", promotion={"stabilizationSeconds": 3})
    (tmp_path / "policy.yaml").write_text(json.dumps(body))
    found = run("replay", recorded(tmp_path), "--filename", tmp_path / "policy.yaml")
    assert "00:00:18 broker 1 may lead again" in found.output


def test_a_replay_as_json_is_one_document(tmp_path: Path):
    document = json.loads(run("replay", recorded(tmp_path), "-o", "json").stdout)
    assert (document["policy"], document["truncated"], document["differences"]) == ("main", False, [])
    demoted = [row for row in document["timeline"] if row["what"] == "demoted"]
    assert [(row["broker"], row["at"]) for row in demoted] == [(1, "2026-01-01T00:00:06.000Z")]


def test_a_truncated_trace_is_replayed_and_reported(tmp_path: Path):
    path = recorded(tmp_path)
    path.write_bytes(path.read_bytes()[:-60])
    found = run("replay", path)
    assert found.exit_code == 0
    assert "is demoted" in found.output
    assert "the trace is incomplete" in found.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("kafka.bootstrapServers=[kafka.example:9092]", "kafka.bootstrapServers changes nothing: a replay connects"),
        ("promotion.stabilizationSeconds=3", None),
    ],
)
def test_a_setting_that_a_replay_cannot_follow_is_reported(tmp_path: Path, change: str, said: str | None):
    found = run("replay", recorded(tmp_path), "--set", change)
    assert found.exit_code == 0
    if said is None:
        assert "note: " not in found.stderr
    else:
        assert said in found.stderr
