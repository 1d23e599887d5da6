"""Prometheus metrics of a prober. Labels are bounded: brokers of one cluster, a handful of stages, no addresses.

Updated by the probes; served by ``bellwether probe ... --metrics-port``. Every series has the labels of the policy,
the type of signal and the source (the vantage), so that one query reads all probers of a cluster. Some kinds of probers
have metrics of their own in the same registry.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellwether.core.signals import Reading, Signal
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, TimedResults

_ROUND_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

READING_VALUES = {Reading.PASSING: 1.0, Reading.FAILING: 0.0, Reading.UNKNOWN: -1.0}


class ProbeMetrics:
    """Counts and durations of one prober, in a registry of its own; ``labels`` are added to all series."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.health = Health()
        self.registry = LabelledRegistry("prober", labels)
        self.requests = TimedResults(
            self.registry,
            (
                "bellwether_probe_requests",
                "Requests to brokers, by path (external, internal) and result: ok, the stage that failed (Connect, Tls,"
                " Sasl, Request, WrongBroker), or Timeout if TLS or SASL got no answer in time.",
            ),
            ("bellwether_probe_request_duration_seconds", "Duration of a successful request to a broker, in seconds."),
            "broker path",
        )
        self.writes = TimedResults(
            self.registry,
            ("bellwether_probe_disk_writes", "Test writes to the log directory, by result (ok, failed, stalled)."),
            ("bellwether_probe_disk_write_duration_seconds", "Duration of an append of 32 KiB, in seconds."),
            "broker",
        )
        self.sync_seconds = self.registry.histogram(
            "bellwether_probe_disk_sync_duration_seconds",
            "Duration of a 4 KiB write with fdatasync, in seconds.",
            "broker",
        )
        self.reads = TimedResults(
            self.registry,
            (
                "bellwether_probe_disk_reads",
                "Test reads from old segments of the log directory, by result (ok, failed, unmeasured).",
            ),
            (
                "bellwether_probe_disk_read_duration_seconds",
                "Duration of a direct read of 4 KiB from an old segment, in seconds.",
            ),
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
        self.leader = self.registry.gauge(
            "bellwether_probe_leader", "1 while this prober holds its Lease and reports, 0 on standby."
        )
        self.policy_read = self.registry.gauge(
            "bellwether_probe_policy_read_timestamp_seconds", "Unix time at which the policy was last read, in seconds."
        )

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

    def gone(self, broker: int) -> None:
        """The broker is no longer watched: remove its series."""
        self.registry.remove_series(broker=broker)


class _OwnMetrics:
    """Metrics of one kind of prober, in addition to those of every prober."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self.judged, self.gone = metrics.judged, metrics.gone


class CanaryMetrics(_OwnMetrics):
    """Counts and durations of one vantage's requests. Updated by ``probes.canary``."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        super().__init__(metrics)
        self.requests = TimedResults(
            metrics.registry,
            (
                "bellwether_probe_canary_requests",
                "Requests of the canary, by kind (produce, fetch) and result (ok, failed, unmeasured).",
            ),
            ("bellwether_probe_canary_duration_seconds", "Duration of a successful request of the canary, in seconds."),
            "broker kind",
        )


class PluginMetrics(_OwnMetrics):
    """Counts of one plug-in's measurements. Updated by ``probes.plugins``."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        super().__init__(metrics)
        self.measurements = metrics.registry.counter(
            "bellwether_probe_plugin_measurements",
            "Measurements of a plug-in signal type, by result (passing, failing, unknown, error, timeout).",
            "broker result",
        )


class LagMetrics(_OwnMetrics):
    """Replication lag by broker, and the cost of measuring it. Updated by ``probes.replication``."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        super().__init__(metrics)
        self._seconds = metrics.registry.gauge(
            "bellwether_probe_replication_lag_seconds",
            "Replication lag of a broker's worst partition, in seconds: how long ago the leader's log ended where the"
            " follower's log ends now.",
            "broker",
        )
        self._lagging = metrics.registry.gauge(
            "bellwether_probe_replication_lagging_partitions",
            "Partitions whose follower on this broker lags above the threshold, by ISR membership (in, out).",
            "broker isr",
        )
        self._rounds = metrics.registry.counter(
            "bellwether_probe_replication_rounds",
            "Measuring rounds of a broker, by result (ok, failed).",
            "broker result",
        )
        self._round_seconds = metrics.registry.histogram(
            "bellwether_probe_replication_round_duration_seconds",
            "Duration of one measuring round over all brokers, in seconds.",
            buckets=_ROUND_BUCKETS,
        )
        self._partitions = metrics.registry.gauge(
            "bellwether_probe_replication_partitions", "Partitions of the cluster in the last round."
        )

    def measured(self, broker: int, seconds: float, lagging: int, in_isr: int, problem: str) -> None:
        """One round's measurement of one broker: the longest lag, the partitions that lag, those of them in the ISR.

        After a failed round, with its ``problem``, the gauges are absent.
        """
        self._rounds.labels(broker, "failed" if problem else "ok").inc()
        if problem:
            for gauge in (self._seconds, self._lagging):
                gauge.remove_by_labels({"broker": str(broker)})
            return
        self._seconds.labels(broker).set(seconds)
        self._lagging.labels(broker, "in").set(in_isr)
        self._lagging.labels(broker, "out").set(lagging - in_isr)

    def ended(self, seconds: float, partitions: int) -> None:
        """A round over so many partitions has ended."""
        self._round_seconds.observe(seconds)
        self._partitions.set(partitions)


class QueryMetrics:
    """Counts and durations of one policy's queries, by rule, at most 32. Updated by ``probes.prometheus``."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self.queries = TimedResults(
            metrics.registry,
            ("bellwether_probe_queries", "Queries to Prometheus, by rule and result (ok, failed, timeout)."),
            ("bellwether_probe_query_duration_seconds", "Duration of a successful query to Prometheus, in seconds."),
            "rule",
        )
        self._reading = metrics.registry.gauge(
            "bellwether_probe_rule_reading",
            "Reading of a broker by a rule: 1 passing, 0 failing, -1 unknown.",
            "rule broker",
        )

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._reading.labels(signal.source, signal.broker).set(READING_VALUES[signal.reading])

    def gone(self, rule: str, broker: int | None = None) -> None:
        """A rule was removed, or a broker is no longer known: remove their series."""
        if broker is not None:
            self._reading.remove_by_labels({"rule": rule, "broker": str(broker)})
            return
        self.queries.remove(rule=rule)
        self._reading.remove_by_labels({"rule": rule})
