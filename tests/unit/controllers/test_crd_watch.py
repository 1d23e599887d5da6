"""kopf watches once discovery lists both kinds, and is run anew when it could not go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import kopf
import pytest
import structlog

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, NotFound
from bellwether.controllers.crd_watch import SETTLE_SECONDS, WAIT_SECONDS, Watches, await_definitions
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes.memory_api import MemoryApi


@pytest.mark.parametrize("kind", [POLICIES, BROKER_HEALTHS])
def test_definitions_that_are_missing_are_waited_for_and_named_once(kind: Any) -> None:
    api, slept = MemoryApi(), list[float]()
    api.refuse("list", kind, NotFound("no such kind"))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            api.refuse("list", kind, None)

    with structlog.testing.capture_logs() as logs:
        await_definitions(api, sleep)
    assert slept == [WAIT_SECONDS] * 3 + [SETTLE_SECONDS]
    named = [(entry["event"], entry.get("missing")) for entry in logs]
    assert named == [("definitions_missing", [f"{kind.plural}.bellwether.dev"]), ("definitions_served", None)]
    assert "kubectl apply -f crds/" in logs[0]["remedy"]


def test_where_both_are_served_nothing_is_waited_for() -> None:
    await_definitions(MemoryApi(), lambda _: pytest.fail("it waited"))


def test_an_api_that_is_away_is_waited_for() -> None:
    api, slept = MemoryApi(), list[float]()
    api.refuse("served", POLICIES, Transient("no answer"))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        api.refuse("served", POLICIES, None)

    await_definitions(api, sleep)
    assert slept == [WAIT_SECONDS]


def test_an_account_that_may_not_ask_does_not_wait() -> None:
    api = MemoryApi()
    api.refuse("served", POLICIES, Terminal("forbidden"))
    await_definitions(api, lambda _: pytest.fail("it waited"))


class Runs:
    """Stands in the place of kopf: what each run of it does with its stop flag."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *plays: Callable[[asyncio.Event], None]) -> None:
        self.ended = 0
        self._plays = list(plays)
        monkeypatch.setattr(kopf, "operator", self._operator)
        self.api = MemoryApi()
        self.watches = Watches(self.api, kopf.OperatorRegistry(), [], self._end, self._sleep)

    async def _operator(self, *, stop_flag: asyncio.Event, **_: Any) -> None:
        self._plays.pop(0)(stop_flag)
        await asyncio.sleep(0.001)
        if not stop_flag.is_set() and self._plays:
            await asyncio.wait_for(stop_flag.wait(), 60)

    def _sleep(self, _seconds: float) -> None:
        self.api.refuse("list", POLICIES, None)

    def _end(self) -> None:
        self.ended += 1


def test_a_run_that_ends_by_a_signal_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(monkeypatch, lambda _: None)
    runs.watches.run()
    assert runs.ended == 1


def test_watches_that_cannot_go_on_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_another_thread(_: asyncio.Event) -> None:
        threading.Thread(target=runs.watches.begin_anew).start()

    runs = Runs(monkeypatch, from_another_thread, lambda _: None)
    runs.watches.run()
    assert runs.ended == 2


def test_what_failed_because_a_kind_was_gone_does_not_end_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: asyncio.Event) -> None:
        runs.api.refuse("list", POLICIES, NotFound("no such kind"))
        raise OSError("not found")

    runs = Runs(monkeypatch, fail, lambda _: None)
    runs.watches.run()
    assert runs.ended == 2


def test_any_other_failure_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: asyncio.Event) -> None:
        raise OSError("no network")

    runs = Runs(monkeypatch, fail)
    with pytest.raises(OSError, match="no network"):
        runs.watches.run()
    assert runs.ended == 1


def test_while_nothing_is_watched_there_is_nothing_to_end() -> None:
    Watches(MemoryApi(), kopf.OperatorRegistry(), [], lambda: None, lambda _: None).begin_anew()
