"""What ends the wait between two turns, and what does not: real time, in hundredths of a second."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.client import POLICIES
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.handlers.loops import Pace, PolicyLoop
from testkit import apiobjects
from testkit.offices import Office
from testkit.stopwatch import at_best

LONG, SHORT = 20.0, 0.1


def body(**metadata: Any) -> dict[str, Any]:
    made = apiobjects.policy()
    made["metadata"] = {**made["metadata"], "generation": 1, **metadata}
    return made


@pytest.fixture
def loop(office: Office) -> PolicyLoop:
    """A loop that has just had a turn on what it hears now."""
    made = PolicyLoop(
        body(),
        lambda _: office.linker,  # type: ignore[arg-type, return-value]
        office.notices,
        office.custody,
        SystemClock(),
        Pace(inbox_seconds=0.01),
    )
    made._changed(body())
    made._heard = made._fingerprint()
    return made


def waited(loop: PolicyLoop, seconds: float) -> float:
    began = time.monotonic()
    assert not loop._wait(seconds)
    return time.monotonic() - began


def soon(act: Any) -> None:
    threading.Timer(0.02, act).start()


def test_time_ends_it(loop: PolicyLoop):
    assert waited(loop, SHORT) >= SHORT


def test_no_time_is_no_wait(loop: PolicyLoop):
    assert at_best(lambda: waited(loop, 0.0), SHORT) < SHORT


def test_halting_ends_it_for_good(loop: PolicyLoop):
    soon(loop.halt)
    assert loop._wait(LONG)
    assert loop._wait(LONG)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"generation": 2}, id="another spec"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="a deletion"),
        pytest.param({"annotations": {"bellwether.dev/abandon": "true"}}, id="an annotation"),
    ],
)
def test_a_change_of_the_policy_ends_it(loop: PolicyLoop, metadata: dict[str, Any]):
    soon(lambda: loop.update(body(**metadata)))
    assert waited(loop, LONG) < LONG / 2


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"resourceVersion": "99"}, id="a status of our own"),
        pytest.param({"labels": {"team": "a"}}, id="a label"),
    ],
)
def test_a_write_that_changes_nothing_for_us_does_not(loop: PolicyLoop, metadata: dict[str, Any]):
    soon(lambda: loop.update(body(**metadata)))
    assert waited(loop, SHORT) >= SHORT


def test_a_changed_override_ends_it(loop: PolicyLoop):
    def demote() -> None:
        loop.signals.on_broker_health(apiobjects.health(override={"state": "Demoted", "reason": "disk swap"}))
        loop.wake()

    soon(demote)
    assert waited(loop, LONG) < LONG / 2


def test_old_news_told_again_do_not_end_it(loop: PolicyLoop):
    soon(loop.wake)
    assert waited(loop, SHORT) >= SHORT


def test_evidence_that_goes_stale_ends_it_without_any_news(loop: PolicyLoop):
    loop._heard = "that a signal was still fresh"
    assert waited(loop, LONG) < LONG / 2


def test_a_status_that_somebody_wrote_over_ends_it_once(loop: PolicyLoop, monkeypatch: pytest.MonkeyPatch):
    loop.ensure_linked(LeadershipPolicy.read(body()))
    monkeypatch.setattr(loop._notices, "overwritten", lambda *_: True)
    soon(lambda: loop.compare(POLICIES, body()))
    assert waited(loop, LONG) < LONG
    loop.wake()
    assert waited(loop, SHORT) >= SHORT


def test_who_does_not_lead_leaves_others_their_words(loop: PolicyLoop, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop._notices, "overwritten", lambda *_: True)
    soon(lambda: loop.compare(POLICIES, body()))
    assert waited(loop, SHORT) >= SHORT


def test_a_status_as_it_was_said_does_not_end_it(loop: PolicyLoop):
    soon(lambda: loop.compare(POLICIES, body()))
    assert waited(loop, SHORT) >= SHORT
