"""Prometheus metrics of a prober. Labels are bounded: brokers of one cluster, a handful of stages, no addresses.

Told by the probes what they measure; served by ``bellwether probe ... --metrics-port``. Every series carries the
policy, the kind of signal and the source (the vantage), so that one query reads all probers of a cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Protocol

from prometheus_client import Counter, Gauge, Histogram

from bellwether.core.signals import Reading, Signal
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.metrics.metric_registry import LATENCY_BUCKETS, LabelledRegistry

READING_VALUES = {Reading.PASSING: 1.0, Reading.FAILING: 0.0, Reading.UNKNOWN: -1.0}


class Answer(Protocol):
    """What is needed of an answer."""

    @property
    def ok(self) -> bool:
        """Whether it was the right one."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took."""
        ...

    @property
    def result(self) -> str:
        """``ok``, or what it broke at."""
        ...


class Sample(Protocol):
    """What is needed of a write."""

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        ...

    @property
    def problem(self) -> str:
        """Why it failed; empty when it did not."""
        ...

    @property
    def stalled(self) -> bool:
        """Whether it has not ended in time."""
        ...


class ProbeMetrics:
    """Counts and times of one prober, in a registry of its own; ``labels`` are those of all its series."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.health = Health()
        self.registry = LabelledRegistry("prober", labels)
        self._results: dict[int, set[tuple[str, str]]] = {}  # by broker: to look for its series would take all of them
        asked = ["broker", "path"]
        self._asks = Counter(
            "bellwether_probe_asks",
            "Questions to brokers, by path (external, internal) and result (ok, Silent, or the stage at which"
            " they broke).",
            [*asked, "result"],
            registry=self.registry,
        )
        self._ask_seconds = Histogram(
            "bellwether_probe_ask_seconds",
            "Time until the right broker answered.",
            asked,
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._writes = Counter(
            "bellwether_probe_disk_writes",
            "Writes to the log directory, by result (ok, failed, stalled).",
            ["broker", "result"],
            registry=self.registry,
        )
        self._write_seconds = Histogram(
            "bellwether_probe_disk_write_seconds",
            "Time of a 4 KiB write with fdatasync.",
            ["broker"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._outside = Gauge(
            "bellwether_probe_outside_connections",
            "Connections from outside on the external listener's port.",
            ["broker"],
            registry=self.registry,
        )
        self._heard = Gauge(
            "bellwether_probe_heard_seconds",
            "How long ago somebody from outside was last heard of, or since when nobody was.",
            ["broker"],
            registry=self.registry,
        )
        self._reading = Gauge(
            "bellwether_probe_reading",
            "What the prober says of a broker: 1 passing, 0 failing, -1 unknown.",
            ["broker"],
            registry=self.registry,
        )
        self._reports = Counter(
            "bellwether_probe_reports", "Entries written to the API, by result.", ["result"], registry=self.registry
        )
        for result in ("ok", "failed"):
            self._reports.labels(result)
        self._voice = Gauge(
            "bellwether_probe_voice",
            "Whether this prober holds its Lease, and so is the one that reports.",
            registry=self.registry,
        )
        self._policy_read = Gauge(
            "bellwether_probe_policy_read_timestamp_seconds",
            "When the policy was last read.",
            registry=self.registry,
        )

    def asked(self, broker: int, path: str, answer: Answer) -> None:
        """One answer over ``external`` or ``internal``."""
        self._results.setdefault(broker, set()).add((path, answer.result))
        self._asks.labels(broker, path, answer.result).inc()
        if answer.ok:
            self._ask_seconds.labels(broker, path).observe(answer.seconds)

    def wrote(self, broker: int, sample: Sample) -> None:
        """One write, or one that has not ended in time."""
        result = "stalled" if sample.stalled else "failed" if sample.problem else "ok"
        self._writes.labels(broker, result).inc()
        if result == "ok":
            self._write_seconds.labels(broker).observe(sample.seconds)

    def looked(self, broker: int, connections: int, silent_seconds: float) -> None:
        """One look at a broker's sockets."""
        self._outside.labels(broker).set(connections)
        self._heard.labels(broker).set(silent_seconds)

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._reading.labels(signal.broker).set(READING_VALUES[signal.reading])

    def reported(self, ok: bool) -> None:
        """One try to write an entry."""
        self._reports.labels("ok" if ok else "failed").inc()

    def voice(self, held: bool) -> None:
        """Whether the Lease is held."""
        self._voice.set(1.0 if held else 0.0)

    def policy_read(self, at: float) -> None:
        """The policy was read at this time (seconds since the epoch)."""
        self._policy_read.set(at)

    def gone(self, broker: int) -> None:
        """The broker is no longer watched: its series go."""
        results = self._results.pop(broker, set())
        found: list[tuple[Counter | Histogram | Gauge, tuple[str, ...]]]
        found = [(self._asks, (path, result)) for path, result in results]
        found += [(self._ask_seconds, (path,)) for path in {path for path, _ in results}]
        found += [(self._reading, ())]
        for metric, labels in found:
            with contextlib.suppress(KeyError):  # it was never measured
                metric.remove(broker, *labels)
