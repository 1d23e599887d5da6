"""Fault tolerance of a cluster: min.insync.replicas, KRaft voters and lagging replicas, read while a disk is slow.

Adapters read it from topic settings, controllers and a broker's peers, because metadata does not contain it. Used by
``quarantine.hold_decision`` and ``demotion.cure_choice``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quorum:
    """KRaft voters, the voters that keep up with the active controller (itself included), and the active controller."""

    voters: frozenset[int]
    current: frozenset[int]
    active: int | None = None

    def shortage_without(self, node: int, spare: int = 0, others: Collection[int] = ()) -> str | None:
        """Why fewer than a majority and ``spare`` voters would keep up without this node and ``others``; None if there
        would be enough, or if the node is not a voter.
        """
        majority, left = len(self.voters) // 2 + 1, len((self.current & self.voters) - {node, *others})
        if node not in self.voters or left >= majority + spare:
            return None
        gone = sorted({node, *others} & self.voters)
        lost = "it" if gone == [node] else f"brokers {', '.join(map(str, gone))}"
        return (
            f"it is one of {len(self.voters)} controller voters, {len(self.current & self.voters)} of them in sync:"
            f" without {lost} {left} would be, and a majority is {majority}"
        )


@dataclass(frozen=True)
class FaultTolerance:
    """Fault tolerance inputs. ``minimum_isr`` is min.insync.replicas by topic, ``silent`` are peers that did not answer
    now.

    ``trailing`` are followers that had not come, within 0.2 s, to where their leaders were: the high watermark,
    and with it ``acks=all``, waits for them. ``keeping_up`` are those that had; of others it is unknown. ``problem``
    says why the inputs could not be read; what was not read is unknown. ``lasting``: waiting does not end it.
    """

    minimum_isr: Mapping[str, int] = field(default_factory=dict)
    quorum: Quorum | None = None
    silent: frozenset[int] = frozenset()
    trailing: frozenset[int] = frozenset()
    keeping_up: frozenset[int] = frozenset()
    problem: str = ""
    lasting: bool = False
