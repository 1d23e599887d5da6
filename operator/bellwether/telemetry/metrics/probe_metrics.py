"""Prometheus metrics of a prober. Labels are bounded: brokers of one cluster, a handful of stages, no addresses.

Updated by the probes; served by ``bellwether probe ... --metrics-port``. Every series has the labels of the policy,
the type of signal and the source (the vantage), so that one query reads all probers of a cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from prometheus_client import Counter, Gauge, Histogram

from bellwether.core.signals import Reading, Signal
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry

READING_VALUES = {Reading.PASSING: 1.0, Reading.FAILING: 0.0, Reading.UNKNOWN: -1.0}


class ProbeMetrics:
    """Counts and durations of one prober, in a registry of its own; ``labels`` are added to all series."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.health = Health()
        self.registry = LabelledRegistry("prober", labels)
        self._results: dict[
            int, set[tuple[str, str]]
        ] = {}  # by broker, to remove its series without a search through all
        self._requests = self.registry.counter(
            "bellwether_probe_requests",
            "Requests to brokers, by path (external, internal) and result: ok, the stage that failed (Connect, Tls,"
            " Sasl, Request, WrongBroker), or Timeout if TLS or SASL got no answer in time.",
            "broker",
            "path",
            "result",
        )
        self._request_seconds = self.registry.histogram(
            "bellwether_probe_request_duration_seconds",
            "Duration of a successful request to a broker, in seconds.",
            "broker",
            "path",
        )
        self._writes = self.registry.counter(
            "bellwether_probe_disk_writes",
            "Test writes to the log directory, by result (ok, failed, stalled).",
            "broker",
            "result",
        )
        self._write_seconds = self.registry.histogram(
            "bellwether_probe_disk_write_duration_seconds",
            "Duration of an append of 32 KiB, in seconds.",
            "broker",
        )
        self._sync_seconds = self.registry.histogram(
            "bellwether_probe_disk_sync_duration_seconds",
            "Duration of a 4 KiB write with fdatasync, in seconds.",
            "broker",
        )
        self._reads = self.registry.counter(
            "bellwether_probe_disk_reads",
            "Test reads from old segments of the log directory, by result (ok, failed, unmeasured).",
            "broker",
            "result",
        )
        self._read_seconds = self.registry.histogram(
            "bellwether_probe_disk_read_duration_seconds",
            "Duration of a direct read of 4 KiB from an old segment, in seconds.",
            "broker",
        )
        self._outside = self.registry.gauge(
            "bellwether_probe_outside_connections",
            "External connections to the port of the external listener.",
            "broker",
        )
        self._last_client = self.registry.gauge(
            "bellwether_probe_last_client_seen_seconds",
            "Seconds since an external client last sent data; if none ever did, since the prober's start.",
            "broker",
        )
        self._reading = self.registry.gauge(
            "bellwether_probe_reading", "Reading of a broker: 1 passing, 0 failing, -1 unknown.", "broker"
        )
        self._reports = self.registry.counter(
            "bellwether_probe_reports", "Signals written to the Kubernetes API, by result (ok, failed).", "result"
        )
        for result in ("ok", "failed"):
            self._reports.labels(result)
        self._leader = self.registry.gauge(
            "bellwether_probe_leader", "1 while this prober holds its Lease and reports, 0 on standby."
        )
        self._policy_read = self.registry.gauge(
            "bellwether_probe_policy_read_timestamp_seconds", "Unix time at which the policy was last read, in seconds."
        )

    def asked(self, broker: int, path: str, result: str, seconds: float) -> None:
        """One request over ``external`` or ``internal``: ``ok``, or the stage that failed, and its duration."""
        self._results.setdefault(broker, set()).add((path, result))
        self._requests.labels(broker, path, result).inc()
        if result == "ok":
            self._request_seconds.labels(broker, path).observe(seconds)

    def wrote(self, broker: int, result: str, seconds: float) -> None:
        """One append: ``ok``, ``failed`` or ``stalled``, and its duration."""
        self._writes.labels(broker, result).inc()
        if result == "ok":
            self._write_seconds.labels(broker).observe(seconds)

    def synced(self, broker: int, seconds: float) -> None:
        """One sync that has ended, and its duration."""
        self._sync_seconds.labels(broker).observe(seconds)

    def read(self, broker: int, result: str, seconds: float) -> None:
        """One read: ``ok``, ``failed`` or ``unmeasured``, and its duration."""
        self._reads.labels(broker, result).inc()
        if result == "ok":
            self._read_seconds.labels(broker).observe(seconds)

    def looked(self, broker: int, connections: int, silent_seconds: float) -> None:
        """One read of a broker's socket table."""
        self._outside.labels(broker).set(connections)
        self._last_client.labels(broker).set(silent_seconds)

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._reading.labels(signal.broker).set(READING_VALUES[signal.reading])

    def reported(self, ok: bool) -> None:
        """One attempt to write a signal."""
        self._reports.labels("ok" if ok else "failed").inc()

    def voice(self, held: bool) -> None:
        """Whether the Lease is held."""
        self._leader.set(1.0 if held else 0.0)

    def policy_read(self, at: float) -> None:
        """The policy was read at this time (seconds since the epoch)."""
        self._policy_read.set(at)

    def gone(self, broker: int) -> None:
        """The broker is no longer watched: remove its series."""
        results = self._results.pop(broker, set())
        found: list[tuple[Counter | Histogram | Gauge, tuple[str, ...]]]
        found = [(self._requests, (path, result)) for path, result in results]
        found += [(self._request_seconds, (path,)) for path in {path for path, _ in results}]
        found += [(self._reading, ())]
        for metric, labels in found:
            with contextlib.suppress(KeyError):  # it was never measured
                metric.remove(broker, *labels)
