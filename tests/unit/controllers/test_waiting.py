"""What ends the wait between two turns, and what does not, on a logical clock: the news come before the wait."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.reporting.requeue import Requeue
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.simulation.operator_fixture import MemoryOperator

LONG = 100.0


class Ticking(ManualClock):
    """A second passes with each look at the clock."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


def body(**metadata: Any) -> dict[str, Any]:
    made = api_objects.policy()
    made["metadata"] = {**made["metadata"], "generation": 1, **metadata}
    return made


@pytest.fixture
def loop(operator: MemoryOperator) -> PolicyController:
    """A loop that has just had a turn on what it hears now."""
    made = PolicyController(
        body(),
        lambda _: operator.connector,  # type: ignore[arg-type, return-value]
        operator.reporter,
        operator.finalizer,
        Ticking(),
        Requeue(inbox_seconds=0.0001),
    )
    made._wakeups.changed(body())
    made._wakeups.judged(made._inputs())
    return made


def waited(loop: PolicyController, seconds: float = LONG) -> bool:
    """Whether the wait lasted as long as it was to last."""
    began = loop._clock.now()
    assert not loop.wait(seconds)
    return (loop._clock.now() - began).total_seconds() >= seconds


def test_time_ends_it(loop: PolicyController):
    assert waited(loop)


def test_no_time_is_no_wait(loop: PolicyController):
    began = loop._clock.now()
    waited(loop, 0.0)
    assert (loop._clock.now() - began).total_seconds() < 10


def test_a_stop_request_ends_every_wait(loop: PolicyController):
    loop.request_stop()
    assert loop.wait(LONG)
    assert loop.wait(LONG)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"generation": 2}, id="another spec"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="a deletion"),
        pytest.param({"annotations": {"bellwether.dev/abandon": "true"}}, id="an annotation"),
    ],
)
def test_a_change_of_the_policy_ends_it(loop: PolicyController, metadata: dict[str, Any]):
    loop.update(body(**metadata))
    assert not waited(loop)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"resourceVersion": "99"}, id="a status of our own"),
        pytest.param({"labels": {"team": "a"}}, id="a label"),
    ],
)
def test_a_write_that_changes_nothing_for_us_does_not(loop: PolicyController, metadata: dict[str, Any]):
    loop.update(body(**metadata))
    assert waited(loop)


def test_a_changed_override_ends_it(loop: PolicyController):
    loop.signals.on_broker_health(api_objects.health(override={"state": "Demoted", "reason": "disk swap"}))
    loop.wake()
    assert not waited(loop)


def test_repeated_old_news_do_not_end_it(loop: PolicyController):
    loop.wake()
    assert waited(loop)


def test_evidence_that_goes_stale_ends_it_without_any_news(loop: PolicyController):
    loop._wakeups.judged("that a signal was still fresh")
    assert not waited(loop)


def test_an_overwritten_status_ends_it_once(loop: PolicyController, monkeypatch: pytest.MonkeyPatch):
    loop.ensure_connected(LeadershipPolicy.read(body()))
    monkeypatch.setattr(loop._reporter, "overwritten", lambda *_: True)
    loop.compare(POLICIES, body())
    assert not waited(loop)
    loop.wake()
    assert waited(loop)


def test_who_does_not_lead_leaves_others_their_words(loop: PolicyController, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop._reporter, "overwritten", lambda *_: True)
    loop.compare(POLICIES, body())
    assert waited(loop)


def test_a_status_as_it_was_said_does_not_end_it(loop: PolicyController):
    loop.compare(POLICIES, body())
    assert waited(loop)
