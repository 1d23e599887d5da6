"""Brokers that may still hold a reorder of ours, and the proof that one of them holds none any more (invariant 7).

A broker gives up a request that it could not forward to the controller after 60 s. A frozen broker has not begun to: it
reads the request when it is resumed. So the proof is an answer of that broker, to a request that it has to forward, and
a second one ``ARRIVAL_SECONDS`` later: by then it has read, forwarded or dropped all that was sent before the first.
Pure: the reconcile asks between these functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import UndoRecord

ARRIVAL_SECONDS = 120.0
"""60 s for which a broker forwards a request, and as much for a network that delivers it late to a broker that runs."""

CHECKS_PER_PROOF = 12


@dataclass(frozen=True, slots=True)
class BrokerCheck:
    """The last check of one broker, on the monotonic clock in seconds.

    ``answering_since`` is the first of its answers without a failed check in between; None without an answer.
    """

    checked_at: float
    answering_since: float | None

    def proves(self, arrival_seconds: float) -> bool:
        """Whether the broker holds nothing that was sent before the first of these checks."""
        return self.answering_since is not None and self.checked_at - self.answering_since >= arrival_seconds


Checks = Mapping[int, BrokerCheck]


def brokers_to_check(
    record: UndoRecord, cluster: Cluster, checks: Checks, now: float, arrival_seconds: float
) -> frozenset[int]:
    """Brokers to ask now: those that may hold a reorder, are live, and were not asked lately.

    A reorder whose broker is unknown may be held by any broker of the cluster.
    """
    suspects = {sent.broker for entry in record.entries.values() for sent in entry.outstanding}
    named = cluster.live if None in suspects else cluster.live & suspects
    due = arrival_seconds / CHECKS_PER_PROOF
    return frozenset(b for b in named if b not in checks or now - checks[b].checked_at >= due)


def after_checks(
    record: UndoRecord, cluster: Cluster, checks: Checks, answers: Mapping[int, bool], now: float
) -> dict[int, BrokerCheck]:
    """The checks with new ``answers``; a broker that is not live does not answer. Empty if nothing is outstanding."""
    if not record.has_outstanding:
        return {}
    kept = {broker: check for broker, check in checks.items() if broker in cluster.live}
    for broker, answered in answers.items():
        before = kept[broker].answering_since if broker in kept else None
        kept[broker] = BrokerCheck(now, (now if before is None else before) if answered else None)
    return kept


def drained_brokers(cluster: Cluster, checks: Checks, arrival_seconds: float) -> frozenset[int | None]:
    """Brokers that hold no reorder any more; None as well, if that is so for every broker that is registered."""
    proven = frozenset(b for b, check in checks.items() if check.proves(arrival_seconds))
    return proven | {None} if proven and proven >= cluster.unlisted.union(cluster.brokers) else proven


def after_sending(checks: Checks, unproven: Collection[int | None]) -> dict[int, BrokerCheck]:
    """The checks after requests to these brokers were not answered: their proofs begin again."""
    return {broker: check for broker, check in checks.items() if broker not in unproven}
