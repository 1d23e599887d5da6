"""Work by hand on a simulated cluster: every bootstrap of ``demote`` and ``promote`` leads to it, and nothing waits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bellwether.cli.offline import manual_demotion, offline_leadership
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader, MemoryRoute
from testkit.simulation.memory_site import MemorySite


class Route(MemoryRoute):
    """A route that takes the brokers to avoid before there is a reader, as the command does."""

    def avoid(self, brokers: Iterable[int]) -> None:
        """Ask these last."""
        self.avoided = frozenset(brokers)


def lead_to(monkeypatch: pytest.MonkeyPatch, made: MemorySite) -> MemorySite:
    """Let commands meet that cluster."""
    monkeypatch.setattr(manual_demotion, "BrokerPool", lambda *_: Route(made.cluster))
    monkeypatch.setattr(manual_demotion, "KafkaReader", lambda route: MemoryReader(made.cluster, route))
    monkeypatch.setattr(offline_leadership, "KafkaMover", lambda route: MemoryMover(made.cluster, 2.0, route=route))
    monkeypatch.setattr(offline_leadership, "SystemClock", lambda: made.clock)
    return made
