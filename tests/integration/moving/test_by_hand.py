"""``bellwether demote`` and ``promote`` with ``--record FILE``, as processes: what they do, say, write and return."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject, partition
from testkit.kafka.kafka_site import KafkaSite
from testkit.processes.crash_points import REACHED
from waiting import limit

pytestmark = pytest.mark.kafka

DONE, FAILED, MISUSED, HELD = 0, 1, 2, 3
FOUR = [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2), (2, 1, 4), (3, 2, 1)]

Said = tuple[int, str]
Bellwether = Callable[..., Said]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "undo.json"


@pytest.fixture
def bellwether(whole: KafkaCluster, record: Path) -> Bellwether:
    """Run a verb as a process; its exit status and everything that it says."""

    def run(
        verb: str, broker: int = 2, *options: str, bootstrap: str = "", dies_at: str = "", to: Path = record
    ) -> Said:
        command = ["-m", "testkit.processes.crash_points" if dies_at else "bellwether", verb, str(broker)]
        done = subprocess.run(
            [sys.executable, *command, "--bootstrap", bootstrap or whole.bootstrap, "--record", str(to), *options],
            env=os.environ | ({"DIES_AT": dies_at} if dies_at else {}),
            capture_output=True,
            text=True,
            timeout=limit(120),
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def topic(others: KafkaSubject) -> str:
    return others.create(*FOUR)


def test_promote_restores_exactly_what_demote_moved(
    site: KafkaSite, topic: str, bellwether: Bellwether, record: Path
) -> None:
    baseline = site.orders()
    code, said = bellwether("demote", 2, "--reason", "its disk is slow")
    assert (code, "partitions reordered" in said) == (DONE, True), said
    seen = site.eventually(lambda c: c.leaders()[2] == 0)
    assert all(p.replicas[-1] == 2 for p in seen.held_by(2))
    assert {k: sorted(o) for k, o in site.orders().items()} == {k: sorted(o) for k, o in baseline.items()}
    written = json.loads(record.read_text())
    assert [(d["broker"], d["message"]) for d in written["demoted"]] == [(2, "its disk is slow")]
    bytes_before = site.orders(), len(written["topics"])
    code, said = bellwether("demote")
    assert (code, "reordered" in said) == (DONE, False), "twice is as good as once"
    assert (site.orders(), len(json.loads(record.read_text())["topics"])) == bytes_before
    code, said = bellwether("promote")
    assert code == DONE, said
    site.until_ordered(baseline)
    site.eventually(lambda c: all(p.leader == p.replicas[0] for p in c.partitions))
    assert json.loads(record.read_text())["demoted"] == []
    code, said = bellwether("promote")
    assert (code, "is not demoted" in said) == (DONE, True), said


def test_a_dry_run_shows_the_plan_and_changes_nothing(
    site: KafkaSite, topic: str, bellwether: Bellwether, record: Path
) -> None:
    before = site.partitions()
    code, said = bellwether("demote", 2, "--dry-run")
    assert code == DONE, said
    assert "would reorder" in said
    assert f"{topic}-1: [2, 3, 4] -> " in said
    assert site.partitions() == before
    assert list(record.parent.iterdir()) == []


@pytest.mark.parametrize(
    "point",
    [
        "before reorder 1",
        pytest.param("after reorder 1", marks=pytest.mark.slow),
        pytest.param("before elect 2", marks=pytest.mark.slow),
    ],
)
def test_killed_midway_the_same_command_goes_on_and_promote_restores(
    site: KafkaSite, topic: str, bellwether: Bellwether, point: str
) -> None:
    baseline = site.orders()
    code, said = bellwether("demote", dies_at=point)
    assert (code, REACHED in said) == (-signal.SIGKILL, True), said
    code, said = bellwether("demote")
    assert code == DONE, said
    site.eventually(lambda c: c.leaders()[2] == 0)
    code, said = bellwether("promote", dies_at=point)
    assert code == -signal.SIGKILL, said
    code, said = bellwether("promote")
    assert code == DONE, said
    site.until_ordered(baseline)
    site.eventually(lambda c: all(p.leader == p.replicas[0] for p in c.partitions))


def test_what_cannot_move_is_named_and_told_by_the_exit_status(
    site: KafkaSite, others: KafkaSubject, bellwether: Bellwether
) -> None:
    alone = others.create((2,))
    code, said = bellwether("demote")
    assert code == HELD, said
    assert "OnlyReplica" in said
    assert f"{alone}-0" in said
    assert partition(others, alone).leader == 2
    code, said = bellwether("promote")
    assert code == DONE, said


def test_a_broker_that_there_is_not_is_refused_before_anything_is_written(bellwether: Bellwether, record: Path) -> None:
    code, said = bellwether("demote", 99)
    assert code == FAILED
    assert "has no broker 99; it has: 1, 2, 3, 4" in said
    assert not record.exists()


def test_a_bootstrap_where_no_kafka_is_is_named(bellwether: Bellwether, record: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        code, said = bellwether("demote", bootstrap=address)
    assert (code, address in said) == (FAILED, True), said
    assert not record.exists()
    code, said = bellwether("demote", bootstrap="kafka.example")
    assert (code, "not host:port" in said) == (MISUSED, True), said


def test_a_record_that_cannot_be_used_stops_everything_before_kafka_is_touched(
    site: KafkaSite, topic: str, bellwether: Bellwether, record: Path
) -> None:
    before = site.partitions()
    code, said = bellwether("demote", to=record / "no-such-directory" / "undo.json")
    assert (code, "no-such-directory" in said) == (FAILED, True), said

    code, said = bellwether("promote")
    assert (code, "does not exist" in said) == (MISUSED, True), said

    record.write_text('{"format":1,"clusterId":')
    for verb in ("demote", "promote"):
        code, said = bellwether(verb)
        assert (code, "the undo record is damaged" in said) == (FAILED, True), said

    demoted = {
        "broker": 2,
        "cause": "Command",
        "reason": "ManualCommand",
        "message": "",
        "since": "2026-01-01T00:00:00Z",
    }
    foreign: dict[str, Any] = {"format": 1, "clusterId": "another", "epoch": 3, "demoted": [demoted], "topics": []}
    record.write_text(json.dumps(foreign))
    for options in ((), ("--dry-run",)):
        code, said = bellwether("promote", 2, *options)
        assert (code, "belongs to Kafka cluster another" in said) == (FAILED, True), said
    assert json.loads(record.read_text()) == foreign

    record.write_text(json.dumps(foreign | {"format": 99}))
    code, said = bellwether("demote")
    assert (code, "newer version" in said) == (FAILED, True), said
    assert site.partitions() == before


@pytest.fixture
def frozen_demotion(whole: KafkaCluster, topic: str, record: Path) -> Iterator[subprocess.Popen[str]]:
    """A demotion that stands still before its first request."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "testkit.processes.crash_points",
            "demote",
            "2",
            "--bootstrap",
            whole.bootstrap,
            "--record",
            str(record),
        ],
        env=os.environ | {"FREEZES_AT": "before reorder 1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert REACHED in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def test_two_at_once_do_not_share_a_record(
    site: KafkaSite, frozen_demotion: subprocess.Popen[str], bellwether: Bellwether
) -> None:
    before = site.partitions()
    code, said = bellwether("demote", 3)
    assert code == FAILED
    assert f"another bellwether process (pid {frozen_demotion.pid}) works with this record" in said
    assert site.partitions() == before
    frozen_demotion.send_signal(signal.SIGCONT)
    assert frozen_demotion.wait(limit(60)) == DONE
    site.eventually(lambda c: c.leaders()[2] == 0)
    code, said = bellwether("promote")
    assert code == DONE, said


def test_it_speaks_sasl_and_tls(
    whole: KafkaCluster, site: KafkaSite, topic: str, bellwether: Bellwether, tmp_path: Path
) -> None:
    known = whole.security
    assert known is not None
    baseline = site.orders()
    password = tmp_path / "password"
    password.write_text(f"{known.password}\n")
    options = [
        *("--tls-ca", str(known.ca), "--sasl-mechanism", "SCRAM-SHA-512"),
        *("--sasl-username", known.username, "--sasl-password-file", str(password)),
    ]
    code, said = bellwether("demote", 2, *options, bootstrap=known.bootstrap)
    assert code == DONE, said
    site.eventually(lambda c: c.leaders()[2] == 0)
    code, said = bellwether("promote", 2, *options, bootstrap=known.bootstrap)
    assert code == DONE, said
    site.until_ordered(baseline)
    password.write_text("wrong-password")
    code, said = bellwether("demote", 2, *options, bootstrap=known.bootstrap)
    assert code == FAILED
    assert "wrong-password" not in said
    code, said = bellwether("demote", 2, *options[:4], bootstrap=known.bootstrap)
    assert (code, "username, password" in said) == (MISUSED, True), said
