from __future__ import annotations

from datetime import UTC, datetime

from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.brokerwatch import NoAnswer
from bellwether.telemetry.probing import ProbeMetrics


def series(metrics: ProbeMetrics, broker: int) -> int:
    samples = (sample for family in metrics.registry.collect() for sample in family.samples)
    return sum(1 for sample in samples if sample.labels.get("broker") == str(broker))


def test_a_broker_that_is_gone_takes_all_of_its_series_along_and_nobody_elses() -> None:
    metrics = ProbeMetrics()
    for broker in (1, 2):
        metrics.asked(broker, "external", NoAnswer("no answer", 2.0))
        metrics.asked(broker, "external", NoAnswer("", 0.1, ok=True))
        metrics.asked(broker, "internal", NoAnswer("", 0.1, ok=True))
        since = datetime(2026, 1, 1, tzinfo=UTC)
        metrics.judged(Signal(broker, SignalType.EXTERNAL_REACHABILITY, "here", Reading.PASSING, since))
    before = series(metrics, 2)
    metrics.gone(1)
    assert (series(metrics, 1), series(metrics, 2)) == (0, before)
    assert before > 0
    metrics.gone(1)
    metrics.gone(3)
