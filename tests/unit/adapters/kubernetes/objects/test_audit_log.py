"""The audit trail in ConfigMaps: durable before anything moves, bounded for ever, and blocking nothing."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, Object, Resource
from bellwether.adapters.kubernetes.api_errors import Conflict
from bellwether.adapters.kubernetes.objects import audit_log
from bellwether.adapters.kubernetes.objects.audit_log import AGAIN_SECONDS, FULL, KEPT_DAYS, SEGMENTS, ConfigMapAuditLog
from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, BrokerChange
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry import logs
from testkit.kubernetes.memory_api import MemoryApi

DONE = AuditOutcome(4, 2)


@pytest.fixture
def trail(api: MemoryApi, clock: ManualClock) -> ConfigMapAuditLog:
    return ConfigMapAuditLog(api, "default", "main", clock)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    yield stream
    logs.configure("console", "warning")


def entry(clock: ManualClock, text: str = "80 ms", epoch: int = 1) -> AuditEntry:
    return AuditEntry(clock.now(), "c", epoch, changes=(BrokerChange(1, True, "signals", "StorageSlow", text),))


def write(
    trail: ConfigMapAuditLog, clock: ManualClock, text: str = "80 ms", outcome: AuditOutcome = DONE
) -> AuditEntry:
    made = entry(clock, text)
    trail.begin(made)
    made = replace(made, outcome=outcome)
    trail.conclude(made)
    clock.advance(1)
    return made


def segments(api: MemoryApi) -> list[str]:
    return [str(m["metadata"]["name"]) for m in api.all(CONFIG_MAPS)]


def test_intent_of_reconcile_is_durable_before_its_outcome(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock
):
    made = entry(clock)
    trail.begin(made)
    assert ConfigMapAuditLog(api, "default", "main", clock).read() == [made]
    assert made.outcome is None


def test_the_outcome_takes_the_place_of_the_intent(trail: ConfigMapAuditLog, clock: ManualClock):
    made = write(trail, clock)
    assert trail.read() == [made]


def test_the_outcome_finds_its_intent_to_the_microsecond(trail: ConfigMapAuditLog, clock: ManualClock):
    clock.advance(0.123456)
    made = write(trail, clock)
    assert trail.read() == [made]


def test_it_outlives_the_process(api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock):
    first = write(trail, clock)
    again = ConfigMapAuditLog(api, "default", "main", clock)
    second = write(again, clock, "90 ms")
    assert again.read() == [first, second]
    assert segments(api) == ["bellwether-audit-main.1"]


def test_a_segment_has_neither_owner_nor_finalizer(api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock):
    write(trail, clock)
    (segment,) = api.all(CONFIG_MAPS)
    assert "ownerReferences" not in segment["metadata"]
    assert "finalizers" not in segment["metadata"]
    assert segment["metadata"]["labels"]["bellwether.dev/audit"] == "segment"


def test_a_full_segment_is_never_written_again(api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock):
    made = [write(trail, clock, f"{n} ms") for n in range(FULL)]
    first = api.get(CONFIG_MAPS, "default", "bellwether-audit-main.1")
    made.append(write(trail, clock, "one more"))
    assert api.get(CONFIG_MAPS, "default", "bellwether-audit-main.1") == first
    assert segments(api) == ["bellwether-audit-main.1", "bellwether-audit-main.2"]
    assert trail.read() == made


def test_large_entries_fill_a_segment_sooner(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit_log, "FULL_CHARACTERS", 100)
    for n in range(4):
        write(trail, clock, f"{n} ms")
    assert len(segments(api)) == 4


def test_it_never_grows_beyond_its_count_of_segments(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit_log, "FULL", 2)
    made = [write(trail, clock, f"{n} ms") for n in range(3 * SEGMENTS)]
    assert len(segments(api)) == SEGMENTS
    assert trail.read() == made[-2 * SEGMENTS :]


def test_what_is_older_than_its_age_goes(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit_log, "FULL", 1)
    write(trail, clock, "old")
    clock.advance(timedelta(days=KEPT_DAYS).total_seconds() + 1)
    write(trail, clock, "new")
    assert segments(api) == ["bellwether-audit-main.2"]


def test_another_policys_trail_is_left_alone(api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock):
    other = ConfigMapAuditLog(api, "default", "main.1", clock)
    write(other, clock, "other")
    made = write(trail, clock)
    assert trail.read() == [made]
    assert len(other.read()) == 1


@pytest.mark.parametrize("error", [Transient("away"), Terminal("not allowed")])
def test_an_unwritable_trail_blocks_nothing_and_is_caught_up(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock, error: Transient | Terminal
):
    api.refuse("create", CONFIG_MAPS, error)
    first = write(trail, clock)
    assert api.all(CONFIG_MAPS) == []
    api.refuse("create", CONFIG_MAPS, None)
    second = write(trail, clock, "90 ms")
    assert trail.read() == [first, second]


def test_two_writers_lose_nothing_of_each_other(api: MemoryApi, clock: ManualClock):
    one, two = (ConfigMapAuditLog(api, "default", "main", clock) for _ in range(2))
    made = [write(one, clock, "1"), write(two, clock, "2"), write(one, clock, "3")]
    assert one.read() == made


def test_two_writers_that_fill_segments_lose_nothing_of_each_other(
    api: MemoryApi, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit_log, "FULL", 3)
    one, two = (ConfigMapAuditLog(api, "default", "main", clock) for _ in range(2))
    made = [write(trail, clock, str(n)) for n, trail in enumerate([one, two, one, one, one, one, two, one, two, two])]
    assert one.read() == made


def test_a_segment_is_read_once_and_written_from_then_on(clock: ManualClock):
    api = Counting()
    trail = ConfigMapAuditLog(api, "default", "main", clock)
    for number in range(5):
        write(trail, clock, str(number))
    assert api.lists <= 2, "before the first segment is opened, and when older ones are retired then"


class Counting(MemoryApi):
    """Counts what is listed: each list of segments is up to some megabytes."""

    lists = 0

    def list(self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None) -> list[Object]:
        self.lists += 1
        return super().list(resource, namespace, labels)


class Contended(MemoryApi):
    """Another client writes between our read and our write, so many times."""

    times = 2

    def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        if self.times:
            self.times -= 1
            raise Conflict("another writer was first")
        return super().replace(resource, namespace, body)


def test_who_comes_second_reads_again(clock: ManualClock):
    trail = ConfigMapAuditLog(Contended(), "default", "main", clock)
    made = [write(trail, clock, "1"), write(trail, clock, "2")]
    assert trail.read() == made


def test_a_damaged_segment_is_skipped_and_never_overwritten(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock
):
    write(trail, clock)
    damaged = base64.b64encode(b"nonsense").decode()
    api.merge(CONFIG_MAPS, "default", "bellwether-audit-main.1", {"binaryData": {"entries.z": damaged}})
    made = write(trail, clock, "90 ms")
    assert trail.read() == [made]
    assert api.get(CONFIG_MAPS, "default", "bellwether-audit-main.1")["binaryData"]["entries.z"] == damaged


def test_what_is_wanted_and_refused_again_and_again_is_counted(
    api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock
):
    first = write(trail, clock)
    api.writes.clear()
    for _ in range(50):
        write(trail, clock)
    assert api.writes == []
    clock.advance(AGAIN_SECONDS)
    write(trail, clock)
    (counted,) = trail.read()
    assert (counted.at, counted.times) == (first.at, 52)
    assert len(api.writes) == 1


def test_another_outcome_is_written_at_once(trail: ConfigMapAuditLog, clock: ManualClock):
    write(trail, clock)
    other = write(trail, clock, outcome=AuditOutcome(0, 0, stopped="NoAnswer: none"))
    assert trail.read()[-1] == other
    assert len(trail.read()) == 2


def test_each_line_of_the_log_is_complete(lines: io.StringIO, trail: ConfigMapAuditLog, clock: ManualClock):
    write(trail, clock)
    begun, done = (json.loads(line) for line in lines.getvalue().splitlines())
    assert (begun["logger"], begun["event"], begun["policy"]) == (
        "bellwether.audit",
        "audit_entry_started",
        "default/main",
    )
    assert "outcome" not in begun
    assert done["event"] == "audit_entry_completed"
    assert done["outcome"]["reordered"] == 4
    assert done["brokers"][0]["reason"] == "StorageSlow"


def test_the_log_goes_on_without_the_api(
    lines: io.StringIO, api: MemoryApi, trail: ConfigMapAuditLog, clock: ManualClock
):
    api.away = True
    for n in range(3):
        write(trail, clock, str(n))
    noted = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert sum(line["logger"] == "bellwether.audit" for line in noted) == 6
    assert sum(line["event"] == "audit_log_not_written" for line in noted) == 1, "said once, not every time"
