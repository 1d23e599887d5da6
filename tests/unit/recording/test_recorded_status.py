from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.reasons import Reason
from bellwether.recording.recorded_status import RecordedStatus, flaps_of, recorded_statuses, said_section, verdicts_of

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "verdict": {
        "state": "Recovering",
        "reason": "Stabilizing",
        "message": "every signal passes",
        "since": "2026-11-21T09:00:00Z",
        "restartedAt": "2026-11-21T08:59:00Z",
        "evidence": [{"type": "ExternalReachability", "source": "a", "reading": "Passing"}],
        "change": "its signals failing again",
    },
    "flapping": {"demotions": 3, "last": "2026-11-21T09:00:00Z", "stabilizationSeconds": 240},
    "conditions": [
        {"type": "Healthy", "status": "False", "reason": "Stabilizing"},
        {"type": "Demoted", "status": "True", "reason": "StorageSlow", "message": "slow", "observedGeneration": 4},
    ],
    "leaders": 7,
}


def kept(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(said_section({2: status})))
    return found


def test_replay_begins_as_after_a_take_over():
    verdict = verdicts_of(kept(STATUS))[2]
    assert (verdict.broker, str(verdict.state), verdict.reason) == (2, "Recovering", Reason.STABILIZING)
    assert (verdict.since, verdict.restarted) == (T0, T0.replace(hour=8, minute=59))
    assert flaps_of(kept(STATUS)) == {2: FlapCounter(3, T0)}


def test_recorded_status_has_state_reason_and_demotion():
    assert recorded_statuses(kept(STATUS)) == {2: RecordedStatus("Recovering", "Stabilizing", True)}
    assert recorded_statuses(kept({**STATUS, "conditions": []})) == {
        2: RecordedStatus("Recovering", "Stabilizing", False)
    }


def test_what_signals_hold_is_not_stored_twice():
    text = json.dumps(kept(STATUS))
    assert [
        status for status in ("evidence", "change", "leaders", "observedGeneration", "Healthy") if status in text
    ] == []


def test_a_broker_of_which_nothing_was_said_has_no_row():
    assert said_section({2: {}, 3: {"verdict": None, "conditions": None}, 4: {"signals": []}}) == {}


def test_words_that_this_version_does_not_know_are_left_out():
    later = {**STATUS, "verdict": {**STATUS["verdict"], "reason": "SolarFlare"}, "flapping": {"demotions": -1}}
    assert (verdicts_of(kept(later)), flaps_of(kept(later))) == ({}, {})
    assert recorded_statuses(kept(later))[2].reason == "SolarFlare"
    assert verdicts_of({"2": {"verdict": {"state": "Dancing"}}}) == {}
