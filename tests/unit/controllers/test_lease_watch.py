"""The probers' Leases, as an API delivers them: every event once, and after a gap what was missed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object
from bellwether.controllers import lease_watch
from bellwether.controllers.lease_watch import LONGEST_FIELD, LeaseWatch
from bellwether.ports.errors import Transient
from bellwether.simulation.memory_world import ManualClock
from testkit.messages import assert_wording
from waiting import until


def lease(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}


class Feed(KubernetesClient):
    """Lists and watches that were written down; ``since`` is from which version on each watch was asked."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        super().__init__(None)
        self._lists, self._watches = lists, watches
        self.since: list[str] = []

    def list_version(self, *_: Any) -> tuple[list[Object], str]:
        found = self._lists.pop(0)
        if isinstance(found, Exception):
            raise found
        return found, "100"

    def watch(self, *about: Any) -> Iterator[tuple[str, Object]]:
        self.since.append(about[3])
        for event in self._watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


class Delivered(list[tuple[str | None, str]]):
    def __call__(self, event: str | None, body: dict[str, Any]) -> None:
        self.append((event, body["metadata"]["name"]))


def watch(lists: list[Any], watches: list[list[Any]]) -> tuple[LeaseWatch, Delivered, Feed]:
    feed, delivered = Feed(lists, watches), Delivered()
    return LeaseWatch(feed, None, delivered, ManualClock()), delivered, feed


def test_each_event_is_delivered_and_the_next_watch_goes_on_after_the_last_one() -> None:
    events = [("ADDED", lease("b", 101)), ("BOOKMARK", lease("", 107)), ("DELETED", lease("a", 108))]
    watching, delivered, feed = watch([[lease("a", 1)]], [events, []])
    version = watching.watch(watching.list())
    assert watching.watch(version) == "108"
    assert delivered == [(None, "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert feed.since == ["100", "108"]


def test_only_what_is_used_of_a_lease_is_kept() -> None:
    found = lease("a", 1)
    found["metadata"]["annotations"] = {"much": "x" * 200_000}
    found["spec"] = {"holderIdentity": "x" * 200_000, "renewTime": "now", "leaseTransitions": 7}
    kept: list[Object] = []
    watching = LeaseWatch(Feed([[found]], []), None, lambda _, body: kept.append(body), ManualClock())
    watching.list()
    assert kept == [{**lease("a", 1), "spec": {"holderIdentity": "x" * LONGEST_FIELD, "renewTime": "now"}}]


def test_a_lease_that_went_while_nothing_was_watched_is_delivered_as_deleted() -> None:
    watching, delivered, _ = watch([[lease("a", 1), lease("b", 2)], [lease("b", 2)]], [])
    watching.list()
    delivered.clear()
    watching.list()
    assert delivered == [("DELETED", "a"), (None, "b")]


def test_after_a_failure_it_lists_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_watch, "RETRY_SECONDS", 0.0)
    lists = [Transient("away"), [lease("a", 1)], [lease("a", 5)], [lease("a", 9)]]
    lost = [("MODIFIED", lease("a", 2)), Transient("connection lost")]
    watching, delivered, feed = watch(lists, [lost, [KeyError("no such event")], [("MODIFIED", lease("a", 10))]])
    watching.start()
    until(lambda: ("MODIFIED", "a") in delivered[-1:] and len(feed.since) >= 3, 20)
    watching.request_stop()
    watching.join(20)
    assert delivered[:5] == [(None, "a"), ("MODIFIED", "a"), (None, "a"), (None, "a"), ("MODIFIED", "a")]
    assert watching.problems() == []


def test_a_thread_that_died_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    watching, _, _ = watch([], [])
    assert watching.problems() == []
    monkeypatch.setattr(watching, "run", lambda: None)
    watching.start()
    watching.join()
    assert_wording(watching.problems())


def test_a_consumer_that_hangs_is_a_problem_and_a_quiet_watch_is_none() -> None:
    clock, seen, quiet = ManualClock(), list[list[str]](), threading.Event()

    class Quiet(Feed):
        def watch(self, *about: Any) -> Iterator[tuple[str, Object]]:
            yield from super().watch(*about)
            clock.advance(1000)
            seen.append(watching.problems())
            quiet.wait(20)

    def deliver(_: str | None, __: dict[str, Any]) -> None:
        clock.advance(1000)
        seen.append(watching.problems())

    watching = LeaseWatch(Quiet([[]], [[("ADDED", lease("a", 1))]]), None, deliver, clock)
    watching.start()
    until(lambda: len(seen) == 2, 20)
    watching.request_stop()
    quiet.set()
    assert seen == [["the watch of the probers' Leases has been stuck for 1000 s (bound: 120 s)"], []]
