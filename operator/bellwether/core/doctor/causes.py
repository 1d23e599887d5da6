"""Group the partitions at risk by cause, so that a dead broker is one finding and not one for each partition.

In: a ``RiskSummary``, and which brokers are live and which answer. Out: ``RiskCause``s, the worst first. Pure; used by
``bellwether doctor``. Each partition belongs to one cause: the one whose remedy has to come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from bellwether.core.doctor.risks import OFFLINE, WORST_FIRST, Diagnosis, Risk, RiskSummary


class CauseKind(StrEnum):
    """Cause of a risk, in the order of the tests that a partition goes through."""

    ELECTION_PENDING = "ElectionPending"
    NO_ELIGIBLE_LEADER = "NoEligibleLeader"
    BROKERS_REMOVED = "BrokersRemoved"
    BROKERS_DOWN = "BrokersDown"
    BROKERS_UNREACHABLE = "BrokersUnreachable"
    OUT_OF_ISR = "OutOfIsr"
    REASSIGNMENT = "Reassignment"


@dataclass(frozen=True)
class RiskCause:
    """One cause and its partitions, the worst first.

    ``brokers`` are sorted: those that are removed, down, unreachable, out of the ISR or being added; for
    ElectionPending the former leaders as far as metadata names them, for NoEligibleLeader the replicas that are down.
    """

    kind: CauseKind
    brokers: tuple[int, ...]
    diagnoses: tuple[Diagnosis, ...]

    @cached_property
    def by_risk(self) -> Mapping[Risk, tuple[Diagnosis, ...]]:
        """Partitions by class, the worst first; empty classes are omitted."""
        found = {risk: tuple(d for d in self.diagnoses if d.risk is risk) for risk in WORST_FIRST}
        return {risk: some for risk, some in found.items() if some}

    @cached_property
    def also_missing(self) -> tuple[int, ...]:
        """Other brokers that are missing from an ISR of these partitions, where they have a leader."""
        led = (d for d in self.diagnoses if d.risk not in OFFLINE)
        return tuple(sorted({b for d in led for b in d.missing}.difference(self.brokers)))

    @cached_property
    def awaited(self) -> Mapping[int, int]:
        """For each broker, how many offline partitions can lead there without loss; the most first."""
        counted = Counter(b for d in self.diagnoses if d.risk in OFFLINE for b in d.awaited)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def causes(risk_summary: RiskSummary, live: Collection[int], silent: Collection[int] = ()) -> tuple[RiskCause, ...]:
    """Group by cause; ``live`` by metadata, ``silent`` are those of them that do not answer."""
    grouped: dict[CauseKind, list[Diagnosis]] = {}
    blamed: dict[CauseKind, set[int]] = {}
    for found in risk_summary.at_risk:
        kind, brokers = _cause(found, live, silent)
        grouped.setdefault(kind, []).append(found)
        blamed.setdefault(kind, set()).update(brokers)
    made = [RiskCause(kind, tuple(sorted(blamed[kind])), tuple(some)) for kind, some in grouped.items()]
    order = tuple(CauseKind)
    return tuple(sorted(made, key=lambda c: (WORST_FIRST.index(c.diagnoses[0].risk), order.index(c.kind))))


def _cause(found: Diagnosis, live: Collection[int], silent: Collection[int]) -> tuple[CauseKind, Collection[int]]:
    p = found.partition
    if found.risk is Risk.LEADER_LOST:
        return CauseKind.ELECTION_PENDING, [p.leader] if p.leader is not None else ()
    if found.risk in OFFLINE and not found.awaited:
        return CauseKind.NO_ELIGIBLE_LEADER, [b for b in p.replicas if b not in live]
    if found.risk is Risk.REMOVED_BROKER:
        return CauseKind.BROKERS_REMOVED, found.removed
    needed = found.awaited if found.risk in OFFLINE else found.lacking
    if down := [b for b in needed if b not in live]:
        return CauseKind.BROKERS_DOWN, down
    if unreachable := [b for b in needed if b in silent]:
        return CauseKind.BROKERS_UNREACHABLE, unreachable
    if found.removed and found.risk not in OFFLINE:
        return CauseKind.BROKERS_REMOVED, found.removed
    if found.missing:
        return CauseKind.OUT_OF_ISR, found.missing
    return CauseKind.REASSIGNMENT, p.adding
