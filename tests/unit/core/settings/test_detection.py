"""Settings of signals: which of them a policy judges, and how long a silent prober's word counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bellwether.core.settings.detection import Detection, StorageLatency
from bellwether.core.settings.source_settings import Plugin, PrometheusRule

DETECTION = Detection(
    storage_latency=StorageLatency(enabled=False),
    prometheus_rules=(PrometheusRule(name="r", query="q", threshold=1, period_seconds=20),),
    plugins=(Plugin(type="MoonPhase", period_seconds=1),),
)


@pytest.mark.parametrize(
    ("type_", "source", "seconds"),
    [
        ("ExternalReachability", "anywhere", 10),
        ("SelfReachability", "broker-1", 10),
        ("StorageLatency", "broker-1", None),
        ("Canary", "eu-1", None),
        ("ReadLatency", "broker-1", 10),
        ("ReplicationLag", "replication", 30),
        ("Prometheus", "r", 80),
        ("Prometheus", "another", None),
        ("MoonPhase", "anyone", 10),
        ("StarSign", "anyone", None),
    ],
)
def test_staleness_follows_the_type_and_is_zero_for_unused_types(type_: str, source: str, seconds: int | None):
    assert DETECTION.stale_after(type_, source) == seconds


@pytest.mark.parametrize(
    "settings", [partial(PrometheusRule, name="r", query="q", threshold=1), partial(Plugin, type="MoonPhase")]
)
@pytest.mark.parametrize("period", [1, 2, 15, 3600])
def test_one_late_measurement_makes_no_signal_stale(settings: Callable[..., Plugin | PrometheusRule], period: int):
    made = settings(period_seconds=period)
    assert 1 <= made.timeout_seconds <= period
    assert made.stale_after_seconds > 2 * made.period_seconds + made.timeout_seconds


def test_by_default_nothing_is_watched_but_replication_lag():
    assert [w.type for w in Detection().threshold_signals] == ["ReplicationLag"]
