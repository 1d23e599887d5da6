"""Prometheus metrics of the sampler. Labels are bounded: brokers of one cluster, no topics.

Updated by the sampler and by the maintenance of its store; served by ``bellwether sample --metrics-port``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bellwether.telemetry.metrics.metric_registry import LabelledRegistry


class SamplingMetrics:
    """Counts of one sampler, in a registry of its own; ``labels`` are added to all series."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.registry = LabelledRegistry("sampler", labels)
        self._brokers: set[int] = set()
        self._rounds = self.registry.counter(
            "bellwether_sampler_rounds",
            "Sampling rounds by result: complete, partial (a broker did not answer), failed (no samples).",
            "result",
        )
        for result in ("complete", "partial", "failed"):
            self._rounds.labels(result)
        self.late = self.registry.counter(
            "bellwether_sampler_late_rounds", "Rounds skipped because their start time had passed."
        )
        self._failures = self.registry.counter(
            "bellwether_sampler_broker_failures",
            "Rounds in which a broker did not report all partitions that it leads.",
            "broker",
        )
        self.refused = self.registry.counter(
            "bellwether_sampler_store_failures", "Failed writes, rollups and deletions in the store."
        )
        self.lost = self.registry.counter(
            "bellwether_sampler_lost_rounds", "Rounds discarded because the store accepted no writes."
        )
        self.last_written = self.registry.gauge(
            "bellwether_sampler_last_written_timestamp_seconds",
            "Unix time at which the last stored round started, in seconds.",
        )

    def sampled(self, failing: Collection[int], *, complete: bool) -> None:
        """A round has ended; ``failing`` brokers are incomplete."""
        self._rounds.labels("complete" if complete else "partial").inc()
        for broker in failing:
            self._failures.labels(broker).inc()
            self._brokers.add(broker)

    def failed(self) -> None:
        """A round failed."""
        self._rounds.labels("failed").inc()

    def keep(self, brokers: Collection[int]) -> None:
        """Remove the series of all other brokers."""
        for broker in self._brokers - set(brokers):
            self._failures.remove_by_labels({"broker": str(broker)})
            self._brokers.discard(broker)
