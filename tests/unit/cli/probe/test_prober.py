"""A prober's life over the API in memory: one Lease for all its sources, and nothing left of those it gave up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.probe.prober import Prober
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.kubernetes.api_objects import health, policy
from testkit.kubernetes.memory_api import MemoryApi
from waiting import limit, until

SINCE = datetime(2026, 1, 2, tzinfo=UTC)


class Told:
    """A probe that says what it is told to."""

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
    return Signal(1, SignalType.ALERTMANAGER, source, Reading.FAILING, SINCE)


@contextmanager
def running(api: MemoryApi, probe: Told, wanted: set[str], *, many: bool = True) -> Iterator[Prober]:
    prober = Prober(api, "default", "main", SignalType.ALERTMANAGER, "alerts", SystemClock(), ProbeMetrics(), many=many)
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
        assert lease["metadata"]["name"] == "bellwether-prober-main-alertmanager-alerts"


def test_a_source_that_is_no_longer_kept_loses_its_entry_at_once(api: MemoryApi) -> None:
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
    probe.words = [word("alerts")]
    with running(api, probe, set(), many=False) as prober:
        until(lambda: sources(api) == ["alerts"])
        prober.forget(1)
        until(lambda: sources(api) == [])
