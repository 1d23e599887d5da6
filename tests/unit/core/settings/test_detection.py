"""Settings of signals: which of them a policy judges, and how long a silent prober's word counts."""

from __future__ import annotations

import pytest

from bellwether.core.settings.detection import (
    Alertmanager,
    Detection,
    Plugin,
    Prometheus,
    PrometheusRule,
    Reachability,
    ReplicationLag,
    StorageLatency,
)

DETECTION = Detection(
    reachability=Reachability(stale_after_seconds=11),
    storage=StorageLatency(enabled=False),
    replication_lag=ReplicationLag(stale_after_seconds=31),
    prometheus=Prometheus(
        url="http://p", stale_after_seconds=61, rules=(PrometheusRule(name="r", query="q", threshold=1),)
    ),
    alertmanager=Alertmanager(alerts=("A",), stale_after_seconds=32),
    plugins=(Plugin(type="MoonPhase", stale_after_seconds=62),),
)


@pytest.mark.parametrize(
    ("type_", "source", "seconds"),
    [
        ("ExternalReachability", "anywhere", 11),
        ("SelfReachability", "broker-1", 10),
        ("StorageLatency", "broker-1", None),
        ("ReadLatency", "broker-1", 10),
        ("ReplicationLag", "replication", 31),
        ("Prometheus", "r", 61),
        ("Prometheus", "another", None),
        ("Alertmanager", "A", 32),
        ("Alertmanager", "B", None),
        ("MoonPhase", "anybody", 62),
        ("StarSign", "anybody", None),
    ],
)
def test_patience_is_that_of_the_kind_and_none_where_nobody_judges(type_: str, source: str, seconds: int | None):
    assert DETECTION.stale_after(type_, source) == seconds


def test_by_default_only_reads_and_replication_lag_are_watched():
    assert [w.type for w in Detection().threshold_signals] == ["ReadLatency", "ReplicationLag"]
