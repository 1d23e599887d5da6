"""What kopf overlooks, because the API server says that a definition stands before it serves the kind, is found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import kopf
import pytest
import structlog
from kopf._cogs.clients import scanning
from kopf._cogs.structs.references import Insights, Resource
from kopf._core.reactor import observation

from bellwether.api.v1alpha1.models import GROUP, VERSION
from bellwether.handlers import definitions
from bellwether.handlers.definitions import KINDS, look_again
from bellwether.handlers.watches import Loops, register

SOON = (0.0, 0.0, 0.0)


def kind(plural: str) -> Resource:
    return Resource(GROUP, VERSION, plural, verbs=frozenset({"list", "watch"}), namespaced=True, preferred=True)


BOTH = [kind(plural) for plural in sorted(KINDS)]


async def rest() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def change(insights: Insights) -> None:
    """As kopf tells of a change."""
    async with insights.revised:
        insights.revised.notify_all()


def looking(
    play: Callable[[Insights], Awaitable[None]], *, at_start: bool = False, fails: bool = False, finds: bool = False
) -> int:
    """How often was looked while something happened."""

    async def whole() -> int:
        insights, looks = Insights(), 0

        async def look() -> None:
            nonlocal looks
            looks += 1
            if finds:
                insights.watched_resources.update(BOTH)
            if fails:
                raise OSError("away")

        task = asyncio.create_task(definitions._looks(insights, look, SOON, at_start=at_start))
        await play(insights)
        await rest()
        assert not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return looks

    return asyncio.run(whole())


async def start(insights: Insights) -> None:
    """As kopf begins."""
    await rest()
    await change(insights)
    insights.ready_resources.set()
    await rest()
    await change(insights)
    insights.ready_namespaces.set()
    await rest()


async def start_and_change(insights: Insights) -> None:
    await start(insights)
    await change(insights)


async def start_and_change_twice(insights: Insights) -> None:
    await start_and_change(insights)
    await rest()
    await change(insights)


def test_after_a_change_is_looked_again_a_few_times() -> None:
    assert looking(start_and_change) == len(SOON)
    assert looking(start_and_change_twice) == 2 * len(SOON)


def test_the_start_is_no_change() -> None:
    assert looking(start) == 0


def test_where_no_change_is_heard_of_the_start_itself_is_looked_after() -> None:
    assert looking(start, at_start=True) == len(SOON)


def test_once_both_kinds_are_watched_nothing_is_asked() -> None:
    assert looking(start_and_change_twice, finds=True) == 1


def test_a_look_that_fails_is_told_and_the_next_one_comes() -> None:
    with structlog.testing.capture_logs() as logs:
        assert looking(start_and_change, fails=True) == len(SOON)
    assert {entry["log_level"] for entry in logs} == {"error"}


@pytest.mark.parametrize("scan", [True, False])
def test_kinds_that_kopf_looked_for_too_early_are_watched(monkeypatch: pytest.MonkeyPatch, scan: bool) -> None:
    served: list[Resource] = []

    async def scanned(**_: Any) -> list[Resource]:
        return list(served)

    monkeypatch.setattr(scanning, "scan_resources", scanned)

    async def whole() -> Insights:
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        register(registry, Loops(lambda _: pytest.fail("no policy"), lambda *_: None), scan=scan)
        insights = look_again(registry, scan=scan, pauses=SOON)
        begin, end = (
            next(h.fn for h in registry._activities.get_all_handlers() if h.id.endswith(name))
            for name in ("begin", "end")
        )
        await begin(settings=settings)
        insights.ready_resources.set()
        insights.ready_namespaces.set()
        await asyncio.sleep(0)
        if scan:  # a definition comes, and the API server does not serve it yet
            event: Any = {"type": "ADDED", "object": {"spec": {"group": GROUP}}}
            await observation.process_discovered_resource_event(
                raw_event=event, settings=settings, registry=registry, insights=insights
            )
            assert not insights.watched_resources
        served.extend(BOTH)
        await rest()
        await end()
        return insights

    assert {one.plural for one in asyncio.run(whole()).watched_resources} == KINDS
