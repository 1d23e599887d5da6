"""One prober's entries, of one source or of many: written on news, removed without a change of others."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease, SignalWriter
from bellwether.core.signals import Harm, Reading, Signal, SignalType
from bellwether.ports.clock import Clock
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes.api_objects import entry, health
from testkit.kubernetes.memory_api import MemoryApi
from waiting import until

RULES = SignalType.PROMETHEUS
SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def word(source: str, broker: int = 1, reading: Reading = Reading.FAILING, **more: Any) -> Signal:
    return Signal(broker, RULES, source, reading, **{"since": SINCE, **more})


@pytest.fixture
def api() -> MemoryApi:
    api = MemoryApi()
    for broker in (1, 2):
        body = health(broker)
        body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
        api.put(BROKER_HEALTHS, body)
    return api


def writer_of(api: MemoryApi, source: str | None = None, uid: str = "uid-1") -> SignalWriter:
    lease = ProberLease(api, "default", "main", RULES, source or "rules", SystemClock(), uid=uid)
    return SignalWriter(api, "default", "main", RULES, source, lease)


def sources(api: MemoryApi, broker: int = 1) -> list[str]:
    status = api.get(BROKER_HEALTHS, "default", f"main-{broker}").get("status") or {}
    return sorted(e["source"] for e in status.get("signals") or [])


def test_every_source_has_its_own_entry_under_one_lease(api: MemoryApi) -> None:
    writer = writer_of(api)
    writer.write(word("flush"))
    writer.write(word("idle", reading=Reading.PASSING))
    found = api.get(BROKER_HEALTHS, "default", "main-1")["status"]["signals"]
    assert {(e["source"], e["reading"]) for e in found} == {("flush", "Failing"), ("idle", "Passing")}
    assert {e["leaseName"] for e in found} == {"bellwether-prober-main.prometheus.rules"}


def test_a_source_is_forgotten_without_touching_the_others(api: MemoryApi) -> None:
    writer = writer_of(api)
    for source in ("flush", "idle"):
        for broker in (1, 2):
            writer.write(word(source, broker))
    writer.forget(1, "flush")
    assert (sources(api, 1), sources(api, 2)) == (["idle"], ["flush", "idle"])


def test_a_prober_of_many_sources_must_say_whose_entry_goes(api: MemoryApi) -> None:
    with pytest.raises(ValueError, match="source is required"):
        writer_of(api).forget(1)


def test_a_prober_of_one_source_writes_no_other(api: MemoryApi) -> None:
    with pytest.raises(ValueError, match="Prometheus/idle does not belong to this prober, which is Prometheus/flush"):
        writer_of(api, "flush").write(word("idle"))


def test_an_unchanged_entry_is_not_written_again_for_any_source(api: MemoryApi) -> None:
    writer = writer_of(api)
    writer.write(word("flush"))
    writer.write(word("idle"))
    before = len(api.writes)
    writer.write(word("flush", value=3.0))
    writer.write(word("idle", value=3.0))
    assert len(api.writes) == before


def test_entries_of_unwanted_sources_go_even_of_earlier_processes(api: MemoryApi) -> None:
    writer_of(api, uid="uid-0").write(word("dropped-while-down"))
    writer = writer_of(api)
    writer.write(word("flush"))
    writer.write(word("idle"))
    assert writer.check({"idle"}) == ()
    assert sources(api) == ["idle"]
    assert writer.check({"idle"}) == ()


def test_entries_of_other_probers_are_kept(api: MemoryApi) -> None:
    standing = [entry("eu-west-1a"), entry("other-prober", type="Prometheus", leaseName="another-lease")]
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"signals": standing}}, sub="status")
    writer_of(api).check(())
    assert sources(api) == ["eu-west-1a", "other-prober"]


def test_removed_entries_are_written_again(api: MemoryApi) -> None:
    writer = writer_of(api)
    for source in ("flush", "idle"):
        writer.write(word(source))
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"signals": []}}, sub="status")
    assert writer.check({"flush", "idle"}) == (1,)
    assert sources(api) == ["flush", "idle"]


def test_prober_that_starts_again_keeps_since_time_of_each_source(api: MemoryApi) -> None:
    first, second = writer_of(api, uid="uid-0"), writer_of(api)
    first.write(word("flush"))
    first.write(word("idle", reading=Reading.PASSING))
    later = SINCE + timedelta(hours=1)
    second.write(word("flush", since=later))
    second.write(word("idle", since=later))
    found = {e["source"]: e["since"] for e in api.get(BROKER_HEALTHS, "default", "main-1")["status"]["signals"]}
    assert found == {"flush": "2026-01-02T03:04:05Z", "idle": "2026-01-02T04:04:05Z"}


def test_prober_of_two_types_keeps_and_removes_both_entries(api: MemoryApi) -> None:
    writes, reads = SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY
    lease = ProberLease(api, "default", "main", writes, "broker-1", SystemClock(), uid="uid-1")
    writer = SignalWriter(api, "default", "main", writes, "broker-1", lease, further_types=(reads,))
    for type_ in (writes, reads):
        writer.write(Signal(1, type_, "broker-1", Reading.PASSING, SINCE))
    found = api.get(BROKER_HEALTHS, "default", "main-1")["status"]["signals"]
    assert {e["type"] for e in found} == {"StorageLatency", "ReadLatency"}
    assert {e["leaseName"] for e in found} == {"bellwether-prober-main.storagelatency.broker-1"}
    writer.forget(1)
    assert sources(api) == []


def test_an_entry_whose_harm_alone_has_changed_is_written_again(api: MemoryApi) -> None:
    writer = writer_of(api)
    for lost in (1.0, 2.0):
        writer.write(word("flush", harm=Harm(lost, 1.0, SINCE)))
    (found,) = api.get(BROKER_HEALTHS, "default", "main-1")["status"]["signals"]
    assert found["harm"]["lostMilliseconds"] == 2000


def lease_of(api: MemoryApi, measured: str, clock: Clock | None = None) -> ProberLease:
    return ProberLease(
        api,
        "default",
        "main",
        SignalType.STORAGE_LATENCY,
        "broker-1",
        clock or SystemClock(),
        duration_seconds=2,
        renew_seconds=0.05,
        measured=measured,
    )


def standing_by(first: ProberLease, second: ProberLease) -> tuple[str, str]:
    """What each knows of the other, while the first lives and the second tries to acquire the Lease."""
    first.beat()
    assert not second.acquire()
    return first.rival, second.rival


def test_two_different_probers_of_one_source_know_each_other(api: MemoryApi) -> None:
    first, second = lease_of(api, "/data at kafka-a-1"), lease_of(api, "/data at kafka-b-1")
    assert first.acquire()
    until(lambda: standing_by(first, second) == ("/data at kafka-b-1", "/data at kafka-a-1"))
    until(lambda: (first.beat(), first.rival)[1] == "")
    assert first.seconds_left() > 0, "a claim leaves the Lease with its holder"
    first.release()


def test_standby_for_same_directory_is_no_rival_and_takes_over(api: MemoryApi) -> None:
    first, second = lease_of(api, "/data at kafka-a-1"), lease_of(api, "/data at kafka-a-1")
    assert first.acquire()
    for _ in range(20):
        assert standing_by(first, second) == ("", "")
        time.sleep(0.02)
    first.release()
    assert second.acquire()
    second.release()


def test_lease_of_dead_prober_is_taken_over_without_conflict(api: MemoryApi) -> None:
    dead, clock = lease_of(api, "/data at kafka-a-1"), ManualClock()
    assert dead.acquire()
    dead._stop.set()
    replacement = lease_of(api, "/new at kafka-a-1", clock)
    while not replacement.acquire():
        clock.advance(0.5)
        assert replacement.rival == ""
    assert clock.monotonic() <= 10
    replacement.release()


def test_probers_without_a_broker_are_replicas(api: MemoryApi) -> None:
    first, second = lease_of(api, ""), lease_of(api, "")
    assert first.acquire()
    for _ in range(20):
        assert standing_by(first, second) == ("", "")
        time.sleep(0.02)
    first.release()
