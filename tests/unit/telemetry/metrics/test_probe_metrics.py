from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.telemetry.metrics.metric_registry import LATENCY_BUCKETS
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


def series(metrics: ProbeMetrics, broker: int) -> int:
    samples = (sample for family in metrics.registry.collect() for sample in family.samples)
    return sum(1 for sample in samples if sample.labels.get("broker") == str(broker))


def test_a_broker_that_is_gone_loses_its_own_series_only() -> None:
    metrics = ProbeMetrics()
    for broker in (1, 2):
        metrics.requests.add(broker, "external", "Connect", seconds=2.0)
        metrics.requests.add(broker, "external", "ok", seconds=0.1)
        metrics.requests.add(broker, "internal", "ok", seconds=0.1)
        since = datetime(2026, 1, 1, tzinfo=UTC)
        metrics.judged(Signal(broker, SignalType.EXTERNAL_REACHABILITY, "here", Reading.PASSING, since))
    before = series(metrics, 2)
    metrics.gone(1)
    assert (series(metrics, 1), series(metrics, 2)) == (0, before)
    assert before > 0
    metrics.gone(1)
    metrics.gone(3)


def test_a_thousand_brokers_make_less_than_fifty_series_each() -> None:
    metrics = ProbeMetrics({"namespace": "kafka", "policy": "main", "source": "zone-a"})
    since = datetime(2026, 1, 1, tzinfo=UTC)
    for broker in range(1000):
        for path in ("external", "internal"):
            for stage in Stage:
                metrics.requests.add(broker, path, stage, seconds=2.0)
            metrics.requests.add(broker, path, "ok", seconds=0.1)
        metrics.judged(Signal(broker, SignalType.EXTERNAL_REACHABILITY, "zone-a", Reading.PASSING, since))
    assert 1000 < sum(len(family.samples) for family in metrics.registry.collect()) < 50_000


def test_buckets_reach_from_quick_disk_to_connection_that_hangs() -> None:
    assert (LATENCY_BUCKETS[0], LATENCY_BUCKETS[-1]) == (0.001, 30.0)
    assert all(below * 2 <= above <= below * 4 for below, above in pairwise(LATENCY_BUCKETS))


def test_reports_are_zero_before_they_rise() -> None:
    assert ProbeMetrics().registry.get_sample_value("bellwether_probe_reports_total", {"result": "failed"}) == 0
