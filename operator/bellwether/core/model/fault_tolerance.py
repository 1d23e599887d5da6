"""Fault tolerance of a cluster: min.insync.replicas, KRaft voters and trailing replicas, read for a quarantine.

In: what an adapter read of topics, of the controllers and of a broker's peers; metadata does not hold it. Called by
``quarantine.pause_decision``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quorum:
    """The KRaft voters, those of them that keep up with the active controller, itself included, and who that is."""

    voters: frozenset[int]
    current: frozenset[int]
    active: int | None = None

    def spares_without(self, node: int) -> int | None:
        """How many more voters could be lost once this node is; None for a node that does not vote."""
        if node not in self.voters:
            return None
        majority = len(self.voters) // 2 + 1
        return len((self.current & self.voters) - {node}) - majority


@dataclass(frozen=True)
class FaultTolerance:
    """``minimum_isr`` is min.insync.replicas by topic, ``silent`` are peers that did not answer just now.

    ``trailing`` are brokers whose logs ended before those of their leaders, time and again: the high watermark, and
    with it ``acks=all``, waits for them. ``problem`` says why they could not be read; what was not read is not known.
    """

    minimum_isr: Mapping[str, int] = field(default_factory=dict)
    quorum: Quorum | None = None
    silent: frozenset[int] = frozenset()
    trailing: frozenset[int] = frozenset()
    problem: str = ""
