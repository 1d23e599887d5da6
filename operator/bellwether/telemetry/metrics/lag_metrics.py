"""Prometheus metrics of the replication prober. Labels are bounded: brokers of one cluster, no topics.

Told by ``probes.replication.replication_probe`` what it measures; the series stand in the registry of
``telemetry.metrics.probe_metrics``, which serves what all probers have in common.
"""

from __future__ import annotations

from typing import Protocol

from prometheus_client import Counter, Gauge, Histogram

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

_ROUND_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Sounding(Protocol):
    """What is needed of one round's look at a broker."""

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
    """Lags by broker, and what measuring them costs."""

    def __init__(self, common: ProbeMetrics) -> None:
        self._common = common
        self._seconds = Gauge(
            "bellwether_probe_replication_lag_seconds",
            "How long ago the leader's log ended where the follower's ends now: the worst of a broker's partitions.",
            ["broker"],
            registry=common.registry,
        )
        self._lagging = Gauge(
            "bellwether_probe_replication_lagging_partitions",
            "Partitions on which a follower lags above the threshold, by whether it is in the ISR (in, out).",
            ["broker", "isr"],
            registry=common.registry,
        )
        self._looks = Counter(
            "bellwether_probe_replication_looks",
            "Rounds in which a broker was measured (ok), or was not (unmeasured).",
            ["broker", "result"],
            registry=common.registry,
        )
        self._rounds = Histogram(
            "bellwether_probe_replication_round_seconds",
            "Time of one round of questions to all the brokers.",
            buckets=_ROUND_BUCKETS,
            registry=common.registry,
        )
        self._partitions = Gauge(
            "bellwether_probe_replication_partitions",
            "Partitions of the cluster in the last round.",
            registry=common.registry,
        )

    def measured(self, broker: int, look: Sounding) -> None:
        """One round's look at one broker; while it is not measured its gauges are absent."""
        self._looks.labels(broker, "unmeasured" if look.problem else "ok").inc()
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
        self._rounds.observe(seconds)
        self._partitions.set(partitions)

    def gone(self, broker: int) -> None:
        """The broker is no longer watched: its series go."""
        self._common.gone(broker)
        self._forget_gauges(broker)
        self._looks.remove_by_labels({"broker": str(broker)})

    def _forget_gauges(self, broker: int) -> None:
        for gauge in (self._seconds, self._lagging):
            gauge.remove_by_labels({"broker": str(broker)})
