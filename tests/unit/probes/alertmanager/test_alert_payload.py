from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.probes.alertmanager.alert_payload import ALERT_LIMIT, Alert, read

# As Alertmanager 0.31 sends it, whitespace aside.
REAL: dict[str, Any] = {
    "receiver": "bellwether",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "DiskSlow", "broker": "main-kafka-2", "severity": "critical"},
            "annotations": {"summary": "the disk is slow", "description": "longer"},
            "startsAt": "2026-01-02T03:04:05.678Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://prometheus:9090/graph",
            "fingerprint": "0e0ef0d3a4a3d9a1",
        }
    ],
    "groupLabels": {"alertname": "DiskSlow"},
    "commonLabels": {"alertname": "DiskSlow"},
    "commonAnnotations": {},
    "externalURL": "http://alertmanager:9093",
    "version": "4",
    "groupKey": '{}:{alertname="DiskSlow"}',
    "truncatedAlerts": 0,
}


def body(**changed: Any) -> bytes:
    return json.dumps({**REAL, **changed}).encode()


def alert(**changed: Any) -> dict[str, Any]:
    return {**REAL["alerts"][0], **changed}


def test_a_real_body_is_understood() -> None:
    found = read(body())
    assert found.alerts == (
        Alert("DiskSlow", "0e0ef0d3a4a3d9a1", True, REAL["alerts"][0]["labels"], "the disk is slow"),
    )
    assert found.left_out == 0


def test_a_resolution_and_what_alertmanager_cut_off_are_seen() -> None:
    found = read(body(alerts=[alert(status="resolved", annotations={})], truncatedAlerts=3))
    assert (found.alerts[0].firing, found.alerts[0].summary, found.left_out) == (False, "", 3)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"4"',
        b"\xff\xfe",
        body()[:-40],
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b'{"version":"4","alerts":' + b"[" * 500_000,
        body(version="3"),
        body(version=4),
        body(alerts=None),
        body(alerts={}),
        body(alerts=[1]),
        body(alerts=[alert(status="maybe")]),
        body(alerts=[alert(status=True)]),
        body(alerts=[alert(labels=None)]),
        body(alerts=[alert(labels={"broker": 2})]),
        body(alerts=[alert(labels={"broker": ["2"]})]),
        body(alerts=[alert(fingerprint="")]),
        body(alerts=[alert(fingerprint="x" * 65)]),
        body(alerts=[alert(fingerprint="../../etc")]),
        body(alerts=[alert(annotations=[])]),
        body(alerts=[alert()] * (ALERT_LIMIT + 1)),
        body(truncatedAlerts=-1),
        json.dumps({k: v for k, v in REAL.items() if k != "alerts"}).encode(),
    ],
    ids=lambda b: f"{b[:30]!r}-{len(b)}",
)
def test_what_is_no_notification_is_refused_in_one_short_line(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        read(bad)
    said = str(refused.value)
    assert len(said) <= 200
    assert "\n" not in said


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(ValueError, match=r"alerts\.0\.status") as refused:
        read(body(alerts=[alert(status="hunter2")]))
    assert "hunter2" not in str(refused.value)


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=300) | json_values.map(lambda v: json.dumps(v).encode()))
def test_anything_is_either_understood_or_refused(sent: bytes) -> None:
    try:
        read(sent)
    except ValueError:
        return


@given(
    st.sampled_from([*REAL, "alerts.status", "alerts.labels", "alerts.fingerprint", "alerts.annotations"]), json_values
)
def test_a_body_with_any_one_part_forged_is_either_understood_or_refused(part: str, value: Any) -> None:
    _, _, inner = part.partition(".")
    forged = body(alerts=[alert(**{inner: value})]) if inner else body(**{part: value})
    try:
        found = read(forged)
    except ValueError:
        return
    for one in found.alerts:
        assert isinstance(one.name, str)
        assert len(one.summary) <= 200
        assert one.summary.isprintable()


@given(st.integers(0, 2_000))
def test_a_truncated_body_is_refused(length: int) -> None:
    whole = body()
    if length < len(whole):
        with pytest.raises(ValueError, match=r"\w"):
            read(whole[:length])
