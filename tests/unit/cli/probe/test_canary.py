"""What ``bellwether probe canary`` takes and refuses, and its table."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka import canary_client
from bellwether.adapters.kafka.canary_client import MOST_BROKERS
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.canary import CanaryRun, canary
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import SignalType
from bellwether.destinations import ANYWHERE
from bellwether.ports.canary import FETCH, PRODUCE, CanaryResult
from bellwether.probes.canary.canary_probe import CanaryProbe
from bellwether.probes.runtime.prober import Prober
from bellwether.probes.runtime.prober_process import PolicyProber
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics, ProbeMetrics
from testkit.kafka.scripted_broker import ScriptedBroker
from testkit.kafka.scripted_metadata import answers, described
from testkit.kubernetes.api_objects import policy
from testkit.kubernetes.memory_api import MemoryApi


def run(*arguments: str) -> Any:
    return CliRunner().invoke(canary, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--once"], "Missing option '--policy': the LeadershipPolicy to read settings from (or --bootstrap)"),
        (["--policy", "main", "-A"], "--all-namespaces excludes --policy and --namespace"),
        (["--policy", "main", "-n", "a", "-n", "b"], "--policy requires a single --namespace"),
        (["--shard", "3/2"], "'3/2' is not K/N with 1 <= K <= N: use a value such as 2/3"),
        ([], "Missing option '--vantage'"),
        (["--policy", "main", "--bootstrap", "h:9092"], "require --once"),
        (["--policy", "main", "--topic", "t"], "--topic requires --bootstrap"),
        (["--policy", "main"], "Missing option '--vantage'"),
        (["--once", "--bootstrap", "h:9092,foo"], "bootstrap address 'foo' is not host:port"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(arguments: list[str], complaint: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert complaint in " ".join(ended.output.split())


def test_cluster_with_too_many_brokers_gets_no_client() -> None:
    clock, metrics, made = SystemClock(), ProbeMetrics(), list[Any]()
    api = MemoryApi()
    prober = Prober(api, "default", "main", SignalType.CANARY, "zone-a", clock, metrics)
    with (
        ScriptedBroker(answers(described=described(*range(3, MOST_BROKERS + 2)))) as broker,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(
            canary_client, "ConfluentCanary", lambda *one: made.append(one)
        )  # it would have two threads for each
        external = {"vantages": ["zone-a"], "bootstrapServers": [broker.address]}
        detection = {"externalReachability": external, "canary": {"enabled": True}}
        body = policy(kafka={"bootstrapServers": [broker.address]}, detection=detection)
        run = CanaryRun(
            PolicyProber(prober, metrics, clock, threading.Event(), SecretReader(api, "default", destinations=ANYWHERE))
        )
        assert run.follow(LeadershipPolicy.read(body))
        run.refresh()
    assert made == []


class Answers:
    """Answers every request at once: produce with the latency or problem of its partition."""

    def __init__(self, clock: ManualClock, produced: float | str) -> None:
        self._clock = clock
        self._produced = produced
        self._waiting: list[CanaryResult] = []

    def produce(self, partition: int) -> None:
        if isinstance(self._produced, str):
            self._waiting.append(CanaryResult(partition, PRODUCE, 2.0, self._produced))
        else:
            self._waiting.append(CanaryResult(partition, PRODUCE, self._produced, offset=7))
            self._waiting.append(CanaryResult(partition, FETCH, 0.0, offset=7))

    def consume(self, partitions: Collection[int]) -> None:
        assert set(partitions) == {5}

    def results(self, timeout_seconds: float) -> list[CanaryResult]:
        self._clock.advance(timeout_seconds)
        found, self._waiting = self._waiting, []
        return found


def table(answers: Answers, clock: ManualClock, partitions: dict[int, int]) -> int:
    metrics = CanaryMetrics(ProbeMetrics())
    probe = CanaryProbe("once", lambda _signal: None, lambda _broker: None, clock, metrics)
    probe.refresh(answers, partitions, frozenset(partitions))
    return measurement_table.canary(probe, partitions, Objectives(), clock, "table")


@pytest.mark.parametrize(
    ("produced", "status", "row"),
    [
        (0.004, 0, "1 Passing 4.0 ms 0.0 ms"),
        (0.2, 4, "1 Failing 200 ms 0.0 ms"),
        ("no answer within 2 s", 4, "1 Failing no answer within 2 s"),
    ],
)
def test_the_table_has_both_latencies_and_the_reading(
    produced: float | str, status: int, row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = ManualClock()
    assert table(Answers(clock, produced), clock, {1: 5}) == status
    assert row in [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_cluster_without_brokers_in_the_topic_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    assert table(Answers(clock, 0.1), clock, {}) == 4
    assert "BROKER" in capsys.readouterr().out
