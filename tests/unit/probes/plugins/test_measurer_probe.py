from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import Reading, Signal
from bellwether.probes.plugins import measurer_probe
from bellwether.probes.plugins.measurer_probe import MOST_AT_ONCE, MeasurerProbe, attempted
from bellwether.probes.plugins.plugin_api import Measurement
from bellwether.telemetry.metrics.probe_metrics import PluginMetrics, ProbeMetrics
from testkit.messages import assert_wording
from waiting import limit, until


class Quick(Plugin):
    """Settings whose times do not follow from a period of seconds."""

    timeout_seconds: float = 0.2  # type: ignore[assignment]
    stale_after_seconds: float = 10.0  # type: ignore[assignment]


FAST: Any = Quick(
    type="Fast",
    period_seconds=0.05,  # type: ignore[arg-type]
    failure_threshold=3,
    success_threshold=1,
    settings=(("limit", "5"),),
)
ADDRESSES = {broker: {"EXTERNAL": f"out-{broker}:1"} for broker in (1, 2, 3)}


class Scripted:
    """A measurer that does to each broker what it was asked to do; ``over`` lets hanging calls return."""

    type = "Fast"

    def __init__(self) -> None:
        self.doing: dict[int, Callable[[], Any]] = {}
        self.calls: list[tuple[int, Mapping[str, str], Mapping[str, str], float]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.over = threading.Event()
        self._lock = threading.Lock()

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Any:
        with self._lock:
            self.calls.append((broker, addresses, settings, timeout_seconds))
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return self.doing.get(broker, lambda: Measurement(True, "well"))()
        finally:
            with self._lock:
                self.under_way -= 1

    def hang(self) -> Measurement:
        self.over.wait(limit(30))
        return Measurement(False, "too late to matter")

    def count(self, broker: int) -> int:
        return sum(1 for call in self.calls if call[0] == broker)


class Bench:
    def __init__(self, settings: Plugin = FAST) -> None:
        self.measurer = Scripted()
        self.posts: list[Signal] = []
        self.forgotten: list[int] = []
        self.metrics = ProbeMetrics()
        self.probe = MeasurerProbe(
            self.measurer,
            "here",
            settings,
            self.posts.append,
            self.forgotten.append,
            SystemClock(),
            PluginMetrics(self.metrics),
        )

    def last(self) -> dict[int, Reading]:
        return {s.broker: s.reading for s in self.posts}

    def close(self) -> None:
        self.measurer.over.set()
        self.probe.stop()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    bench.probe.start()
    bench.probe.refresh(ADDRESSES)
    until(lambda: bench.last() == dict.fromkeys((1, 2, 3), Reading.PASSING))
    yield bench
    bench.close()


def test_a_kind_gets_the_brokers_listeners_and_the_policys_settings(bench: Bench) -> None:
    assert (2, {"EXTERNAL": "out-2:1"}, {"limit": "5"}, 0.2) in bench.measurer.calls


def test_each_broker_is_posted_once_while_nothing_changes(bench: Bench) -> None:
    until(lambda: bench.measurer.count(3) > 8)
    assert len(bench.posts) == 3


def test_failure_and_recovery_are_posted_with_their_value(bench: Bench) -> None:
    bench.measurer.doing[2] = lambda: Measurement(False, "sick", 7)
    until(lambda: bench.last()[2] is Reading.FAILING)
    assert (bench.posts[-1].type, bench.posts[-1].source, bench.posts[-1].value) == ("Fast", "here", 7.0)
    del bench.measurer.doing[2]
    until(lambda: bench.last()[2] is Reading.PASSING)
    assert bench.last()[1] is Reading.PASSING


def test_hanging_measurement_is_no_evidence_and_delays_no_other(bench: Bench) -> None:
    bench.measurer.doing[1] = bench.measurer.hang
    until(lambda: bench.last()[1] is Reading.UNKNOWN)
    calls = bench.measurer.count(1)
    bench.measurer.doing[2] = lambda: Measurement(False, "sick")
    until(lambda: bench.last()[2] is Reading.FAILING)
    others = bench.measurer.count(3)
    until(lambda: bench.measurer.count(3) > others + 6)
    assert bench.measurer.count(1) == calls
    assert bench.measurer.under_way == 1
    assert bench.probe.alive()


def test_what_hanging_measurement_returns_in_end_does_not_count(bench: Bench) -> None:
    bench.measurer.doing[1] = bench.measurer.hang
    until(lambda: bench.last()[1] is Reading.UNKNOWN)
    bench.measurer.doing[1] = lambda: Measurement(True, "well")
    bench.measurer.over.set()
    until(lambda: bench.last()[1] is Reading.PASSING)
    assert all(s.reading is not Reading.FAILING for s in bench.posts)


def test_hanging_brokers_never_take_more_threads_than_bound() -> None:
    bench = Bench()
    many: dict[int, dict[str, str]] = {broker: {} for broker in range(2 * MOST_AT_ONCE)}
    bench.measurer.doing = dict.fromkeys(many, bench.measurer.hang)
    bench.probe.start()
    bench.probe.refresh(many)
    until(lambda: bench.measurer.under_way == MOST_AT_ONCE)
    until(lambda: not bench.probe.alive())
    assert bench.measurer.most_under_way == MOST_AT_ONCE
    bench.close()


def test_a_broker_that_is_not_measured_for_long_becomes_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer_probe, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(Quick, "timeout_seconds", 60)
    monkeypatch.setattr(Quick, "stale_after_seconds", 0.3)
    bench = Bench(FAST)
    bench.probe.start()
    bench.probe.refresh({1: {}, 2: {}})
    until(lambda: bench.last() == dict.fromkeys((1, 2), Reading.PASSING))
    bench.measurer.doing[1] = bench.measurer.hang  # and holds the only place
    until(lambda: bench.last() == dict.fromkeys((1, 2), Reading.UNKNOWN))
    assert_wording({s.message for s in bench.posts[-2:]})
    bench.close()


def raising() -> Measurement:
    raise ValueError("secretive\ntrouble")


def leaving() -> Measurement:
    sys.exit(3)


@pytest.mark.parametrize(
    ("doing", "said"),
    [
        (raising, "no evidence: the measurement raised ValueError: secretive trouble"),
        (leaving, "no evidence: the measurement raised SystemExit: 3"),
        (lambda: "fine", "no evidence: measure() returned str, not a Measurement"),
        (lambda: Measurement(False, "x", float("nan")), "no evidence: Measurement.value is not a finite number"),
        (lambda: Measurement(None, "vantage down"), "no evidence: vantage down"),
    ],
)
def test_a_kind_that_breaks_is_no_evidence_and_says_why(bench: Bench, doing: Any, said: str) -> None:
    bench.measurer.doing[2] = doing
    until(lambda: bench.last()[2] is Reading.UNKNOWN)
    assert bench.posts[-1].message == said
    assert bench.last()[1] is Reading.PASSING


def test_error_of_measurer_is_said_once_for_all_brokers() -> None:
    bench = Bench()
    bench.measurer.doing = dict.fromkeys((1, 2, 3), raising)
    with capture_logs() as logs:
        bench.probe.start()
        bench.probe.refresh(ADDRESSES)
        until(lambda: min(map(bench.measurer.count, (1, 2, 3))) > 6)
        bench.close()
    assert [entry["event"] for entry in logs] == ["plugin_failed"]


def test_message_changing_at_every_measurement_is_not_always_written(bench: Bench) -> None:
    bench.measurer.doing[2] = lambda: Measurement(
        True, f"{time.monotonic()} s of uptime, and more words {id(object())}"
    )
    before = bench.measurer.count(2)
    until(lambda: bench.measurer.count(2) > before + 8)
    assert len(bench.posts) == 3


def test_removed_broker_is_forgotten_with_its_series(bench: Bench) -> None:
    bench.probe.refresh({1: {}, 2: {}})
    assert bench.forgotten == [3]
    labels = [s.labels.get("broker") for m in bench.metrics.registry.collect() for s in m.samples]
    assert ("2" in labels, "3" in labels) == (True, False)


def test_at_rest_no_broker_is_measured_and_entries_stay(bench: Bench) -> None:
    bench.probe.rest()
    until(lambda: bench.measurer.under_way == 0)
    calls = len(bench.measurer.calls)
    time.sleep(0.3)
    assert (len(bench.measurer.calls), bench.forgotten) == (calls, [])
    assert bench.probe.alive()


def test_a_new_voice_tells_everything_again(bench: Bench) -> None:
    bench.probe.repeat()
    until(lambda: len(bench.posts) == 6)


def test_long_period_delays_neither_first_verdict_nor_new_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer_probe, "_FIRST_PERIOD_SECONDS", 0.05)
    bench = Bench(Plugin(type="Fast", period_seconds=3600, success_threshold=3))
    bench.probe.start()
    bench.probe.refresh(ADDRESSES)
    until(lambda: bench.last() == dict.fromkeys((1, 2, 3), Reading.PASSING))
    time.sleep(0.3)
    assert max(map(bench.measurer.count, (1, 2, 3))) <= 4
    bench.probe.repeat()
    assert len(bench.posts) == 6
    bench.close()


def test_measuring_once_covers_every_broker_within_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quick, "timeout_seconds", limit(1))
    measurer = Scripted()
    measurer.doing = {1: measurer.hang, 2: raising}
    found = attempted(measurer, {broker: {} for broker in range(40)}, FAST, SystemClock())
    measurer.over.set()
    assert [b for b, m in found.items() if m.ok is None] == [1, 2]
    assert found[1].message == f"the measurement has not ended within {limit(1)} s"
    assert len(found) == 40
