"""Definitions that come while the operator runs: what is served is looked at again after kopf has looked.

In: kopf's registry. Out: the insights that ``kopf.run`` must be given. kopf asks the API what it serves in the very
moment that a definition changes, and never again. The API server says so a moment before it serves the kind, so kopf
misses it now and then, and would watch nothing until the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import kopf
import structlog
from kopf._cogs.structs.references import Insights
from kopf._core.reactor import observation

from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES
from bellwether.api.v1alpha1.models import GROUP

AGAIN_SECONDS = (1.0, 3.0, 10.0, 30.0)
"""The pauses before each further look."""

KINDS = {POLICIES.plural, BROKER_HEALTHS.plural}

log = structlog.get_logger(__name__)

Look = Callable[[], Awaitable[None]]


def look_again(registry: kopf.OperatorRegistry, *, scan: bool, pauses: Sequence[float] = AGAIN_SECONDS) -> Insights:
    """Look again after each change of a definition (``scan``), or after the start alone, where none is heard of."""
    insights = Insights()
    tasks: list[asyncio.Task[None]] = []

    @kopf.on.startup(registry=registry)
    async def begin(settings: kopf.OperatorSettings, **_: Any) -> None:
        async def look() -> None:
            await observation.process_discovered_resource_event(
                raw_event={"type": "MODIFIED", "object": {"spec": {"group": GROUP}}},
                settings=settings,
                registry=registry,
                insights=insights,
            )

        tasks.append(asyncio.create_task(_looks(insights, look, pauses, at_start=not scan)))

    @kopf.on.cleanup(registry=registry)
    async def end(**_: Any) -> None:
        for task in tasks:
            task.cancel()

    return insights


async def _looks(insights: Insights, look: Look, pauses: Sequence[float], *, at_start: bool) -> None:
    # What is told until then is the listing at the start.
    await insights.ready_resources.wait()
    await insights.ready_namespaces.wait()
    left = list(pauses) if at_start else []
    while True:
        try:
            async with insights.revised, asyncio.timeout(left[0] if left else None):
                await insights.revised.wait()
            left = list(pauses)
        except TimeoutError:
            left.pop(0)
            if {one.plural for one in insights.watched_resources if one.group == GROUP} >= KINDS:
                continue  # nothing was missed
            try:
                await look()
            except Exception:
                # The watches go on, and the next change is looked at again.
                log.exception("what the API serves could not be looked at")
