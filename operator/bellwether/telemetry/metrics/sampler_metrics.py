"""Prometheus metrics of the sampler. Labels are bounded: brokers of one cluster, no topics.

Told by ``sampler_metrics.sampler`` and by the upkeep of its store what was measured, written and removed; served by
``bellwether sample --metrics-port``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from prometheus_client import Counter, Gauge, Histogram

from bellwether.telemetry.metrics.metric_registry import LabelledRegistry

_ROUND_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0)


class SamplingMetrics:
    """Counts and times of one sampler, in a registry of its own; ``labels`` are those of all its series."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.registry = LabelledRegistry("sampler", labels)
        self._brokers: set[int] = set()
        self._rounds = Counter(
            "bellwether_sampler_rounds",
            "Rounds by result: whole, partial (somebody did not answer), failed (nothing was written down).",
            ["result"],
            registry=self.registry,
        )
        for result in ("whole", "partial", "failed"):
            self._rounds.labels(result)
        self._late = Counter(
            "bellwether_sampler_late_rounds", "Rounds left out, as their moment had passed.", registry=self.registry
        )
        self._failures = Counter(
            "bellwether_sampler_broker_failures",
            "Rounds in which a broker did not tell all that it leads.",
            ["broker"],
            registry=self.registry,
        )
        self._rows = Counter(
            "bellwether_sampler_rows", "Samples, by what was told: ends, or not.", ["end"], registry=self.registry
        )
        self._bytes = Counter(
            "bellwether_sampler_written_bytes", "Bytes written to the store.", ["what"], registry=self.registry
        )
        self._store = Counter(
            "bellwether_sampler_store_failures", "Writes and upkeep that the store refused.", registry=self.registry
        )
        self._removed = Counter(
            "bellwether_sampler_removed",
            "Compacted files whose parts have gone, and expired days.",
            ["what"],
            registry=self.registry,
        )
        self._lost = Counter(
            "bellwether_sampler_lost_rounds", "Rounds given up since the store took none.", registry=self.registry
        )
        self._seconds = Histogram(
            "bellwether_sampler_round_seconds",
            "Time of one round, without writing.",
            buckets=_ROUND_BUCKETS,
            registry=self.registry,
        )
        self._partitions = Gauge(
            "bellwether_sampler_partitions", "Partitions of the cluster in the last round.", registry=self.registry
        )
        self._last = Gauge(
            "bellwether_sampler_last_written_timestamp_seconds",
            "When the last round began that the store has.",
            registry=self.registry,
        )

    def sampled(self, seconds: float, rows: int, known: int, failing: Collection[int], whole: bool) -> None:
        """A round has ended: of ``rows`` samples ``known`` have an end; these brokers did not tell all."""
        self._rounds.labels("whole" if whole else "partial").inc()
        self._seconds.observe(seconds)
        self._partitions.set(rows)
        self._rows.labels("known").inc(known)
        self._rows.labels("unknown").inc(rows - known)
        for broker in failing:
            self._failures.labels(broker).inc()
            self._brokers.add(broker)

    def failed(self) -> None:
        """A round came to nothing."""
        self._rounds.labels("failed").inc()

    def late(self, rounds: int) -> None:
        """So many rounds were left out."""
        self._late.inc(rounds)

    def written(self, at: float, size: int) -> None:
        """The round of that time (seconds since the epoch) is in the store."""
        self._bytes.labels("round").inc(size)
        self._last.set(at)

    def compacted(self, size: int, removed: int) -> None:
        """Files were made into one, and files went that are no longer needed."""
        self._bytes.labels("compacted").inc(size)
        self._removed.labels("file").inc(removed)

    def expired(self, days: int) -> None:
        """So many days went."""
        self._removed.labels("day").inc(days)

    def refused(self) -> None:
        """The store took nothing."""
        self._store.inc()

    def lost(self) -> None:
        """A round was given up."""
        self._lost.inc()

    def keep(self, brokers: Collection[int]) -> None:
        """Only these brokers exist: the series of others go."""
        for broker in self._brokers - set(brokers):
            self._failures.remove_by_labels({"broker": str(broker)})
            self._brokers.discard(broker)
