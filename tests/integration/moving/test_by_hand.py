"""``bellwether demote`` and ``promote`` with ``--record FILE``: what they do, say, write and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject
from testkit.kafka.kafka_site import KafkaSite
from testkit.processes.crash_points import REACHED
from testkit.values.security_settings import client_properties
from waiting import limit

pytestmark = pytest.mark.kafka

DONE, FAILED, HELD = 0, 1, 3
FOUR = [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2), (2, 1, 4), (3, 2, 1)]

Said = tuple[int, str]
Bellwether = Callable[..., Said]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "undo.json"


@contextmanager
def crashing(arguments: list[str], **point: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a verb up to a point."""
    command = [sys.executable, "-m", "testkit.processes.crash_points", *arguments]
    process = subprocess.Popen(
        command, env=os.environ | point, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bellwether(whole: KafkaCluster, record: Path) -> Bellwether:
    """Run a verb, as a process where it is to die; its exit status and everything that it says."""

    def run(
        verb: str, broker: int = 2, *options: str, bootstrap: str = "", dies_at: str = "", to: Path = record
    ) -> Said:
        arguments = [verb, str(broker), "--bootstrap", bootstrap or whole.bootstrap, "--record", str(to), *options]
        if not dies_at:
            found = CliRunner().invoke(main, arguments)
            assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
            return found.exit_code, found.output
        with crashing(arguments, DIES_AT=dies_at) as process:
            said, _ = process.communicate(timeout=limit(120))
        return process.returncode, said

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


def test_two_at_once_do_not_share_a_record(
    whole: KafkaCluster, site: KafkaSite, topic: str, record: Path, bellwether: Bellwether
) -> None:
    before = site.partitions()
    arguments = ["demote", "2", "--bootstrap", whole.bootstrap, "--record", str(record)]
    with crashing(arguments, FREEZES_AT="before reorder 1") as frozen:
        assert frozen.stdout is not None
        assert any(REACHED in line for line in frozen.stdout)
        code, said = bellwether("demote", 3)
        assert code == FAILED
        assert f"another bellwether process (pid {frozen.pid}) works with this record" in said
        assert site.partitions() == before
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(limit(60)) == DONE
    site.eventually(lambda c: c.leaders()[2] == 0)
    code, said = bellwether("promote")
    assert code == DONE, said


def test_it_speaks_sasl_and_tls(
    whole: KafkaCluster, site: KafkaSite, topic: str, bellwether: Bellwether, tmp_path: Path
) -> None:
    known = whole.security
    assert known is not None
    baseline = site.orders()
    file = client_properties(tmp_path / "client.properties", known.username, known.password, known.ca)
    secured = ["--command-config", str(file)]
    code, said = bellwether("demote", 2, *secured, bootstrap=known.bootstrap)
    assert code == DONE, said
    site.eventually(lambda c: c.leaders()[2] == 0)
    code, said = bellwether("promote", 2, *secured, bootstrap=known.bootstrap)
    assert code == DONE, said
    site.until_ordered(baseline)
    client_properties(file, known.username, "wrong-password", known.ca)
    code, said = bellwether("demote", 2, *secured, bootstrap=known.bootstrap)
    assert code == FAILED
    assert "wrong-password" not in said
