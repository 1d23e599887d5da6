"""A prober's life over the API in memory: one Lease for all its sources, and nothing left of those it gave up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.meta_properties import LogDirIdentity
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.runtime.prober import Prober
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.kubernetes.api_objects import health, policy
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from waiting import limit, until

SINCE = datetime(2026, 1, 2, tzinfo=UTC)


class Told:
    """A probe that says what it is asked to."""

    def __init__(self) -> None:
        self.words: list[Signal] = []
        self.post: Callable[[Signal], None] = lambda _word: None

    def repeat(self) -> None:
        for one in self.words:
            self.post(one)

    def alive(self) -> bool:
        return True


@pytest.fixture
def api() -> MemoryApi:
    api = MemoryApi()
    api.put(POLICIES, policy())
    body = health(1)
    body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
    api.put(BROKER_HEALTHS, body)
    return api


def sources(api: MemoryApi) -> list[str]:
    status = api.get(BROKER_HEALTHS, "default", "main-1").get("status") or {}
    return sorted(e["source"] for e in status.get("signals") or [])


def word(source: str) -> Signal:
    return Signal(1, SignalType.PROMETHEUS, source, Reading.FAILING, SINCE)


@contextmanager
def running(api: MemoryApi, probe: Told, wanted: set[str], *, many: bool = True) -> Iterator[Prober]:
    prober = Prober(api, "default", "main", SignalType.PROMETHEUS, "rules", SystemClock(), ProbeMetrics(), many=many)
    probe.post = prober.post
    stop = threading.Event()

    def follow(_found: LeadershipPolicy | None) -> bool:
        if many:
            prober.keep(wanted)
        return True

    thread = threading.Thread(target=prober.run, args=(probe, follow, stop), daemon=True)
    thread.start()
    yield prober
    stop.set()
    thread.join(limit(10))


def test_many_sources_speak_under_one_lease(api: MemoryApi) -> None:
    probe = Told()
    probe.words = [word("DiskSlow"), word("BrokerUnreachable")]
    with running(api, probe, {"DiskSlow", "BrokerUnreachable"}):
        until(lambda: sources(api) == ["BrokerUnreachable", "DiskSlow"])
        (lease,) = api.all(LEASES)
        assert lease["metadata"]["name"] == "bellwether-prober-main.prometheus.rules"


def test_removed_source_loses_its_entry_at_once(api: MemoryApi) -> None:
    probe = Told()
    probe.words = [word("DiskSlow"), word("BrokerUnreachable")]
    with running(api, probe, {"DiskSlow", "BrokerUnreachable"}) as prober:
        until(lambda: len(sources(api)) == 2)
        prober.keep({"DiskSlow"})
        until(lambda: sources(api) == ["DiskSlow"])


def test_one_source_of_many_is_forgotten_by_its_name(api: MemoryApi) -> None:
    probe = Told()
    probe.words = [word("DiskSlow"), word("BrokerUnreachable")]
    with running(api, probe, {"DiskSlow", "BrokerUnreachable"}) as prober:
        until(lambda: len(sources(api)) == 2)
        prober.forget(1, "DiskSlow")
        until(lambda: sources(api) == ["BrokerUnreachable"])


def test_a_prober_of_one_source_forgets_its_own(api: MemoryApi) -> None:
    probe = Told()
    probe.words = [word("rules")]
    with running(api, probe, set(), many=False) as prober:
        until(lambda: sources(api) == ["rules"])
        prober.forget(1)
        until(lambda: sources(api) == [])


@contextmanager
def beside(api: MemoryApi, measured: str, cluster: str = "c1") -> Iterator[tuple[Prober, Told]]:
    """A storage prober of source broker-1 that finds its disk slow."""
    kind, identity = SignalType.STORAGE_LATENCY, LogDirIdentity(1, Path("/data"), cluster)
    prober = Prober(
        api, "default", "main", kind, "broker-1", SystemClock(), ProbeMetrics(), measured=measured, identity=identity
    )
    probe, stop = Told(), threading.Event()
    probe.words, probe.post = [Signal(1, kind, "broker-1", Reading.FAILING, SINCE)], prober.post
    thread = threading.Thread(target=prober.run, args=(probe, lambda found: found is not None, stop), daemon=True)
    thread.start()
    yield prober, probe
    stop.set()
    thread.join(limit(10))


def said(api: MemoryApi) -> tuple[str, str]:
    entries = (api.get(BROKER_HEALTHS, "default", "main-1").get("status") or {}).get("signals") or [{}]
    return entries[0].get("reading", ""), entries[0].get("message", "")


def test_two_directories_under_one_source_conflict_in_either_order(api: MemoryApi) -> None:
    first, second = "broker 1 at kafka-a-1: /data", "broker 1 at kafka-b-1: /data"
    with beside(api, first) as (one, _):
        until(lambda: said(api)[0] == "Failing")
        with capture_logs() as logs, beside(api, second) as (other, _):
            until(lambda: said(api)[0] == "Unknown")
            message = said(api)[1]
            assert_wording(message)
            assert not one.leads()
            assert not other.leads()
            conflicts = [(log["measured"], log["other"]) for log in logs if log["event"] == "source_conflict"]
            assert {(first, second), (second, first)} == set(conflicts)


def test_nothing_is_reported_to_the_policy_of_another_kafka_cluster(api: MemoryApi) -> None:
    api.merge(POLICIES, "default", "main", {"status": {"clusterId": "c2"}}, sub="status")
    with capture_logs() as logs, beside(api, "broker 1 at kafka-1: /data") as (prober, _):
        until(lambda: any(log["event"] == "other_kafka_cluster" for log in logs))
        assert not prober.leads()
        assert api.all(LEASES) == []
    (log,) = [log for log in logs if log["event"] == "other_kafka_cluster"]
    assert (log["cluster"], log["of_policy"]) == ("c1", "c2")
    assert_wording(log["measured"])
