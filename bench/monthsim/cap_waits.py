"""Waits for the cap: harm that no rule with a cap may cure, because faults of other brokers use it up.

In: what clients of every broker lose while it leads. Out: the same without those waits, and cures as they count then. A
broker is held only while every other one is well, so a fault that only a hold cures waits for that as well.
It is left out for every rule set and for the clairvoyant alike: how many brokers may be demoted or held at once is a
person's decision about the risk of wrong signals, not a rule's. Slots are given in the order in which faults begin, to
those that are worth a move, from their beginning until their broker has been well for a minute; so what a rule wastes
of the cap, by moving too long or for nothing, still counts against it. Called by ``scoring``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bellwether.core.settings.policy import Demotion as DemotionPolicy
from monthsim.assumptions import RACKS
from monthsim.regret import MOVE_SECONDS, WELL_SECONDS, Stretch
from monthsim.relief import Cure


@dataclass(frozen=True, slots=True)
class _Slot:
    broker: int
    start: float
    until: float


def cap_waits(lost: Mapping[int, Sequence[Stretch]]) -> dict[int, list[tuple[float, float]]]:
    """When each broker's fault waits for the cap, under the default policy. Brokers of one rack are one failure."""
    cap = DemotionPolicy().cap(len(lost))
    faults = sorted(
        (f[0].start, f[-1].end, b, any(s.held.then < s.demoted.then for s in f))
        for b, all_ in lost.items()
        for f in _faults(all_)
    )
    slots: list[_Slot] = []
    waits: dict[int, list[tuple[float, float]]] = {b: [] for b in lost}
    for start, end, broker, held in faults:
        free = _free(broker, start, slots, 0 if held else cap)
        if free > start:
            waits[broker].append((start, min(free, end)))
        if free < end:
            slots.append(_Slot(broker, free, end + WELL_SECONDS))
    return waits


def outside(stretches: Iterable[Stretch], waits: Sequence[tuple[float, float]]) -> list[Stretch]:
    """The stretches without the waits."""
    left = list(stretches)
    for start, end in waits:
        left = [
            replace(s, start=begin, end=stop)
            for s in left
            for begin, stop in ((s.start, min(s.end, start)), (max(s.start, end), s.end))
            if stop > begin
        ]
    return left


def counted(
    cures: Iterable[tuple[float, Cure]], left: Sequence[Stretch], waits: Sequence[tuple[float, float]]
) -> list[tuple[float, Cure]]:
    """Cures of a rule: one during a wait counts from its end, or not at all if nothing is left to cure then."""
    found = []
    for time, cure in cures:
        end = next((end for start, end in waits if start <= time < end), None)
        if end is None:
            found.append((time, cure))
        elif any(s.start <= end + WELL_SECONDS and end < s.end for s in left):
            found.append((end, cure))
    return found


def _faults(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """Stretches that belong together, where they are worth a move."""
    groups: list[list[Stretch]] = []
    for stretch in stretches:
        if groups and stretch.start - groups[-1][-1].end <= WELL_SECONDS:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return [g for g in groups if sum(s.lost - s.least for s in g) >= MOVE_SECONDS]


def _free(broker: int, start: float, slots: Sequence[_Slot], cap: int) -> float:
    """When a slot is free for a fault that begins at ``start``; with a cap of 0 when no other broker has one."""
    for time in sorted({start, *(s.until for s in slots if s.until > start)}):
        used = {s.broker for s in slots if s.start <= time < s.until} - {broker}
        if not used or len(used) < cap or (cap and all(b % RACKS == broker % RACKS for b in used)):
            return time
    return start
