"""News is told once; what is refused is told in the log, and tried again with the next turn."""

from __future__ import annotations

import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.client import EVENTS
from bellwether.adapters.kubernetes.events import EventWriter
from bellwether.ports import Terminal
from testkit import apiobjects
from testkit.apistores import MemoryApi


def test_an_event_that_is_refused_is_told_in_the_log_and_posted_when_it_may_be() -> None:
    api, about = MemoryApi(), apiobjects.policy()
    about["metadata"]["namespace"] = "default"
    writer = EventWriter(api, SystemClock(), "pod-1")
    api.refuse("create", EVENTS, Terminal("user ann lacks the verb 'create' on events"))
    with structlog.testing.capture_logs() as logs:
        assert not writer.post(about, "Demoted", "broker 2 is demoted")
    assert [(entry["reason"], entry["why"]) for entry in logs] == [
        ("Demoted", "user ann lacks the verb 'create' on events")
    ]
    api.refuse("create", EVENTS, None)
    assert writer.post(about, "Demoted", "broker 2 is demoted")
    assert not writer.post(about, "Demoted", "broker 2 is demoted")
    assert [event["note"] for event in api.all(EVENTS)] == ["broker 2 is demoted"]
