from __future__ import annotations

import json
from datetime import UTC, datetime

from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.signals import ListenerReading, Override, OverrideState, Reading, Signal
from bellwether.recording.traces.anonymization import Anonymity
from bellwether.recording.traces.cluster_section import cluster_section
from bellwether.recording.traces.trace_sections import DEMOTED, OVERRIDES, signals_section

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
SECRETS = ("acme", "fra1", "10.0.0.7", "kafka-2", "ann", "AcmeLag", "secret-cluster", "topic-id-1")
ALIAS = Anonymity("secret-cluster")


def test_no_name_and_no_free_text_is_left():
    cluster = Cluster(
        "secret-cluster",
        {2: Broker(2, "fra1-a", "kafka-2.acme.example", 9092)},
        (Partition("acme-orders", "topic-id-1", 0, (2,), (2,), 2),),
    )
    apart = (ListenerReading("ACME", Reading.FAILING),)
    signals = [
        Signal(2, "ExternalReachability", "fra1", Reading.FAILING, T0, message="10.0.0.7 refused", listeners=apart)
    ]
    settings = {
        "mode": "Enforce",
        "detection": {
            "externalReachability": {"listeners": ["ACME", "acme2"], "vantages": ["fra1"], "startupGraceSeconds": 1},
            "signalSources": [{"name": "acme-prom", "selector": 'cluster="acme"'}],
        },
        "sources": [
            {
                "name": "acme-prom",
                "spec": {
                    "prometheus": {
                        "url": "http://x",
                        "rules": [
                            {"name": "AcmeLag", "query": "acme_lag", "threshold": "1"},
                            {"name": "b", "preset": "NodeIoStalled", "selector": 'cluster="acme"', "threshold": "1"},
                        ],
                    }
                },
            }
        ],
    }
    said = {
        "verdict": {"state": "Sick", "reason": "StorageSlow", "message": "kafka-2 is slow", "since": "x"},
        "demoted": {"status": "True", "reason": "StorageSlow", "message": "by ann"},
        "flapping": {"demotions": 2, "last": "y"},
    }
    shown = json.dumps(
        [
            cluster_section(ALIAS.cluster(cluster)),
            signals_section(ALIAS.signals(signals)),
            OVERRIDES.write({2: ALIAS.overrides([Override(2, OverrideState.DEMOTED, "ann asks", T0)])[0]}),
            DEMOTED.write(ALIAS.demoted({2: DemotedBroker(2, Cause.OVERRIDE, "OverrideDemoted", "ann asks", T0)})),
            ALIAS.settings(settings),
            ALIAS.said(said),
        ]
    )
    assert [word for word in SECRETS if word.lower() in shown.lower()] == []
    assert "StorageSlow" in shown
    assert '"demotions": 2' in shown


def test_digest_of_name_depends_on_cluster():
    assert ALIAS.name("topic", "orders") == Anonymity("secret-cluster").name("topic", "orders")
    assert ALIAS.name("topic", "orders") != Anonymity("other-cluster").name("topic", "orders")
    assert ALIAS.name("topic", "orders") != ALIAS.name("topic", "payments")


def test_a_listener_has_one_name_in_signals_and_in_settings():
    settings = ALIAS.settings({"detection": {"externalReachability": {"listeners": ["ACME", "OTHER"]}}})
    (seen,) = ALIAS.signals(
        [Signal(2, "x", "fra1", Reading.FAILING, T0, listeners=(ListenerReading("ACME", Reading.FAILING),))]
    )
    assert seen.listeners[0].name == settings["detection"]["externalReachability"]["listeners"][0]


def test_a_vantage_has_one_name_in_signals_and_in_settings():
    settings = ALIAS.settings({"detection": {"externalReachability": {"vantages": ["fra1"]}}})
    signal = Signal(1, "ExternalReachability", "fra1", Reading.PASSING, T0)
    assert settings["detection"]["externalReachability"]["vantages"] == [ALIAS.signals([signal])[0].source]


def test_kafkas_own_topics_keep_their_names():
    internal = Partition("__consumer_offsets", "id", 0, (1,), (1,), 1, internal=True)
    assert ALIAS.cluster(Cluster("c", {}, (internal,))).partitions[0].topic == "__consumer_offsets"
