"""Overrides, verdicts and signal entries on their way between the API and the core."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.status.signal_entries import SignalEntry, entry_of, read_entries
from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.reasons import Reason
from bellwether.core.signals import (
    Harm,
    ListenerReading,
    Override,
    OverrideState,
    Reading,
    Signal,
    SignalType,
    UnreachableCause,
)
from testkit.kubernetes import api_objects

SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_broker_without_an_override_has_none():
    assert BrokerHealth.read(api_objects.health()).override_() is None


def test_an_override_reaches_the_core_with_who_and_until_when():
    said = {"state": "Promoted", "reason": "it is well", "by": "ann", "until": "2026-01-02T03:04:05Z"}
    override = BrokerHealth.read(api_objects.health(override=said)).override_()
    assert override == Override(1, OverrideState.PROMOTED, "it is well (ann)", SINCE)


def test_a_verdict_is_carried_over_a_restart_with_its_evidence():
    said = {
        "state": "Sick",
        "reason": "StorageSlow",
        "message": "slow",
        "since": "2026-01-02T03:04:05Z",
        "evidence": [
            {"type": "StorageLatency", "source": "d", "reading": "Failing", "since": "2026-01-02T03:04:05.123456Z"}
        ],
    }
    verdict = BrokerHealth.read({**api_objects.health(), "status": {"verdict": said}}).status.verdict
    assert verdict is not None
    item = EvidenceItem("StorageLatency", "d", Reading.FAILING, SINCE.replace(microsecond=123456))
    assert verdict.verdict(1) == Verdict(1, HealthState.SICK, Reason.STORAGE_SLOW, "slow", SINCE, facts=(item,))


def test_a_verdict_of_a_newer_version_is_not_carried_over():
    said = {"state": "Sick", "reason": "CosmicRays", "since": "2026-01-02T03:04:05Z"}
    verdict = BrokerHealth.read({**api_objects.health(), "status": {"verdict": said}}).status.verdict
    assert verdict is not None
    assert verdict.verdict(1) is None


def test_a_signal_survives_the_way_to_the_api_and_back():
    signal = Signal(
        broker=1,
        type=SignalType.STORAGE_LATENCY,
        source="data-0",
        reading=Reading.FAILING,
        since=SINCE,
        age_seconds=1.5,
        latency_seconds=0.08,
        message="80 ms",
        harm=Harm(6.2, 0.97, SINCE, frozen_seconds=3.1),
    )
    body = entry_of(signal, "uid", 3, "lease").body()
    assert body["proberUID"] == "uid"
    assert body["latencyMicroseconds"] == 80_000
    assert body["harm"]["lostMilliseconds"] == 6200
    assert SignalEntry.model_validate(body).signal(1, 1.5) == signal


def test_listeners_of_signal_are_read_back():
    harm, cause = Harm(6.2, 0.97, SINCE), UnreachableCause.REFUSED
    apart = (ListenerReading("A", Reading.FAILING, harm, cause), ListenerReading("B", Reading.UNKNOWN))
    kind = SignalType.EXTERNAL_REACHABILITY
    signal = Signal(1, kind, "zone-a", Reading.FAILING, SINCE, harm=harm, cause=cause, listeners=apart)
    assert SignalEntry.model_validate(entry_of(signal, "uid", 3, "lease").body()).signal(1, None) == signal


def test_a_message_that_is_too_long_is_cut():
    signal = Signal(1, SignalType.STORAGE_LATENCY, "data-0", Reading.FAILING, SINCE, message="x" * 9999)
    assert len(entry_of(signal, "uid", 0, "lease").message) == 512


BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ("nonsense", "(not an object)"),
    "nothing": (None, "(not an object)"),
    "a list": ([1], "(not an object)"),
    "no reading": (api_objects.without(api_objects.entry("b"), "reading"), "ExternalReachability/b"),
    "an unknown reading": (api_objects.entry("b", reading="Perhaps"), "ExternalReachability/b"),
    "a type that is no name": (api_objects.entry("b", type="moon phase"), "moon phase/b"),
    "a value that is no number": (api_objects.entry("b", value="NaN"), "ExternalReachability/b"),
    "a time without a zone": (api_objects.entry("b", since="2026-01-02T03:04:05"), "ExternalReachability/b"),
    "a time that is none": (api_objects.entry("b", since="yesterday"), "ExternalReachability/b"),
    "a negative latency": (api_objects.entry("b", latencyMicroseconds=-1), "ExternalReachability/b"),
    "harm without a bound": (
        api_objects.entry("b", harm={"lostMilliseconds": 600_001, "sharePercent": 1, "since": "2026-01-02T03:04:05Z"}),
        "ExternalReachability/b",
    ),
    "a message without end": (api_objects.entry("b", message="x" * 513), "ExternalReachability/b"),
}


@pytest.mark.parametrize(("broken", "name"), BROKEN.values(), ids=BROKEN)
def test_a_broken_entry_is_skipped_and_named_and_others_stay(broken: Any, name: str):
    good, bad = read_entries([api_objects.entry("a"), broken, api_objects.entry("c")])
    assert [entry.source for entry in good] == ["a", "c"]
    assert [str(b).split(" is ignored")[0] for b in bad] == [f"status.signals[1] {name}"]
    status = {"signals": [api_objects.entry("a"), broken, api_objects.entry("c")]}
    assert BrokerHealth.read({**api_objects.health(), "status": status}).status.signals == good


@pytest.mark.parametrize("entries", [None, "text", 7, {}, []])
def test_signals_that_are_no_list_are_no_signals(entries: Any):
    assert read_entries(entries)[0] == ()


def test_signals_beyond_limit_are_ignored():
    status = {"signals": [api_objects.entry(f"v{n}") for n in range(99)]}
    assert len(BrokerHealth.read({**api_objects.health(), "status": status}).status.signals) == 64
