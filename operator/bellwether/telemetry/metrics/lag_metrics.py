"""Prometheus metrics of the replication prober. Labels are bounded: brokers of one cluster, no topics.

Updated by ``probes.replication.replication_probe``; the series are in the registry of
``telemetry.metrics.probe_metrics``, which serves the metrics that all probers share.
"""

from __future__ import annotations

from typing import Protocol

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

_ROUND_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Sounding(Protocol):
    """The fields used from one round's measurement of a broker."""

    @property
    def worst_seconds(self) -> float:
        """The longest lag."""
        ...

    @property
    def lagging(self) -> int:
        """Partitions that lag."""
        ...

    @property
    def in_isr(self) -> int:
        """Those of them in the ISR."""
        ...

    @property
    def problem(self) -> str:
        """Why the broker was not measured; empty when it was."""
        ...


class LagMetrics:
    """Replication lag by broker, and the cost of measuring it."""

    def __init__(self, common: ProbeMetrics) -> None:
        self._common = common
        self._seconds = common.registry.gauge(
            "bellwether_probe_replication_lag_seconds",
            "Replication lag of a broker's worst partition, in seconds: how long ago the leader's log ended where the"
            " follower's log ends now.",
            "broker",
        )
        self._lagging = common.registry.gauge(
            "bellwether_probe_replication_lagging_partitions",
            "Partitions whose follower on this broker lags above the threshold, by ISR membership (in, out).",
            "broker",
            "isr",
        )
        self._rounds = common.registry.counter(
            "bellwether_probe_replication_rounds",
            "Measuring rounds of a broker, by result (ok, failed).",
            "broker",
            "result",
        )
        self._round_seconds = common.registry.histogram(
            "bellwether_probe_replication_round_duration_seconds",
            "Duration of one measuring round over all brokers, in seconds.",
            buckets=_ROUND_BUCKETS,
        )
        self._partitions = common.registry.gauge(
            "bellwether_probe_replication_partitions", "Partitions of the cluster in the last round."
        )

    def measured(self, broker: int, look: Sounding) -> None:
        """One round's measurement of one broker; after a failed round its gauges are absent."""
        self._rounds.labels(broker, "failed" if look.problem else "ok").inc()
        if look.problem:
            self._forget_gauges(broker)
            return
        self._seconds.labels(broker).set(look.worst_seconds)
        self._lagging.labels(broker, "in").set(look.in_isr)
        self._lagging.labels(broker, "out").set(look.lagging - look.in_isr)

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._common.judged(signal)

    def ended(self, seconds: float, partitions: int) -> None:
        """A round over so many partitions has ended."""
        self._round_seconds.observe(seconds)
        self._partitions.set(partitions)

    def gone(self, broker: int) -> None:
        """The broker is no longer watched: remove its series."""
        self._common.gone(broker)
        self._forget_gauges(broker)
        self._rounds.remove_by_labels({"broker": str(broker)})

    def _forget_gauges(self, broker: int) -> None:
        for gauge in (self._seconds, self._lagging):
            gauge.remove_by_labels({"broker": str(broker)})
