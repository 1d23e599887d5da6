"""Prometheus metrics of the sampler. Labels are bounded: brokers of one cluster, no topics.

Updated by the sampler and by the maintenance of its store; served by ``bellwether sample --metrics-port``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bellwether.telemetry.metrics.metric_registry import LabelledRegistry

_ROUND_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0)


class SamplingMetrics:
    """Counts and durations of one sampler, in a registry of its own; ``labels`` are added to all series."""

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
        self._rows = self.registry.counter(
            "bellwether_sampler_rows", "Samples, by whether the log end offset is known (known, unknown).", "end"
        )
        self._bytes = self.registry.counter(
            "bellwether_sampler_written_bytes", "Bytes written to the store, by kind (round, rollup).", "kind"
        )
        self.refused = self.registry.counter(
            "bellwether_sampler_store_failures", "Failed writes, rollups and deletions in the store."
        )
        self._removed = self.registry.counter(
            "bellwether_sampler_removed",
            "Files removed from the store because of their age, by kind (round, rollup).",
            "kind",
        )
        self.lost = self.registry.counter(
            "bellwether_sampler_lost_rounds", "Rounds discarded because the store accepted no writes."
        )
        self._seconds = self.registry.histogram(
            "bellwether_sampler_round_duration_seconds",
            "Duration of one round without writing, in seconds.",
            buckets=_ROUND_BUCKETS,
        )
        self._partitions = self.registry.gauge(
            "bellwether_sampler_partitions", "Partitions of the cluster in the last round."
        )
        self._last = self.registry.gauge(
            "bellwether_sampler_last_written_timestamp_seconds",
            "Unix time at which the last stored round started, in seconds.",
        )

    def sampled(self, seconds: float, rows: int, known: int, failing: Collection[int], whole: bool) -> None:
        """A round has ended: ``known`` of ``rows`` samples have an offset; ``failing`` brokers are incomplete."""
        self._rounds.labels("complete" if whole else "partial").inc()
        self._seconds.observe(seconds)
        self._partitions.set(rows)
        self._rows.labels("known").inc(known)
        self._rows.labels("unknown").inc(rows - known)
        for broker in failing:
            self._failures.labels(broker).inc()
            self._brokers.add(broker)

    def failed(self) -> None:
        """A round failed."""
        self._rounds.labels("failed").inc()

    def written(self, at: float, size: int) -> None:
        """The round of that time (seconds since the epoch) is in the store."""
        self._bytes.labels("round").inc(size)
        self._last.set(at)

    def rolled(self, size: int) -> None:
        """A rollup of so many bytes was written."""
        self._bytes.labels("rollup").inc(size)

    def removed(self, rounds: int, rollups: int) -> None:
        """Old files were removed."""
        self._removed.labels("round").inc(rounds)
        self._removed.labels("rollup").inc(rollups)

    def keep(self, brokers: Collection[int]) -> None:
        """Remove the series of all other brokers."""
        for broker in self._brokers - set(brokers):
            self._failures.remove_by_labels({"broker": str(broker)})
            self._brokers.discard(broker)
