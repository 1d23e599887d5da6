"""Lower bound on the busiest broker-hour, from weights by hour and broker, in one pass through the loads by hour.

Weak duality as in ``load_bounds``, with a term for each hour: weights w on open brokers in hours give
sum(w * load) <= T * sum(w * capacity), and each partition adds at least what its cheapest leader does. T is also at
least what a broker carries in an hour in any case, and what the leader of one partition, which the plan names, does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd
from operator import add, lt, mul
from typing import Any

from bellwether_load.verify.check_report import Faults
from bellwether_load.verify.plan_documents import LARGEST, HourlyClaim, Problem

HOURLY = "bound by hour"
BITS = 64
"""Bits of an hour in a number that holds all hours."""

_Lanes = tuple[tuple[int, int], ...]


class HourBound:
    """Sums over partitions for what a plan claims of the hours; ``hours`` are those of the week that loads know."""

    def __init__(self, problem: Problem, hours: Sequence[int], claim: HourlyClaim, faults: Faults) -> None:
        self._problem = problem
        self._hours = len(hours)
        self._claim = claim
        self._faults = faults
        found = _weights(problem, hours, claim, faults)
        used = sorted({lane for lanes in found.values() for lane, _ in lanes}) or [0]
        self._used = slice(used[0], used[-1] + 1, gcd(*(lane - used[0] for lane in used)) or 1)
        self._weights = {b: _row(lanes, self._hours)[self._used] for b, lanes in found.items()}
        self._alone: dict[int, tuple[int, ...]] = {b.id: (0, 0) for b in problem.brokers}
        self._total = 0
        self._item: tuple[Sequence[int], Sequence[int]] | None = None

    def add(self, at: int, key: tuple[str, str, int], may: Sequence[int], leader: int, more: int, less: int) -> None:
        """Add the partition in row ``at`` of the problem, which one of ``may`` must lead.

        ``more`` without ``less`` is what leading it costs beyond following in each hour, 64 bits an hour.
        """
        if not may:
            return
        if len(may) == 1 and leader == may[0]:
            self._alone[leader] = tuple(map(add, self._alone[leader], (more, less)))
            return
        if less and any(map(lt, unpacked(more, self._hours), unpacked(less, self._hours))):
            said = "would cost less to lead than to follow in an hour: nothing is proved"
            self._faults.add(HOURLY, f"{key[0]}-{key[2]} {said}")
            return
        loads = unpacked(more - less, self._hours)
        if at == self._claim.partition:
            self._item = may, loads.tolist()
        change = self._claim.move_weight
        if self._weights:
            used, none = loads[self._used].tolist(), ()
            self._total += min(
                [sum(map(mul, self._weights.get(b, none), used)) + (change if b != leader else 0) for b in may]
            )
        elif leader not in may:
            self._total += change

    def proved(self, base: Mapping[int, int], allowed: int | None) -> Fraction:
        """The bound if at most ``allowed`` leaders may change; None for any number. ``base``: what following costs each
        broker in each hour, 64 bits an hour."""
        size = {b.id: b.capacity for b in self._problem.brokers if b.open}
        alone = self._alone
        fixed = {b: unpacked(base[b] + alone[b][0] - alone[b][1], self._hours).tolist() for b in size}
        capacity = sum(size[b] * sum(lanes) for b, lanes in self._weights.items())
        total = self._total - self._claim.move_weight * (allowed or 0)
        total += sum(sum(map(mul, lanes, fixed[b][self._used])) for b, lanes in self._weights.items())
        found = [Fraction(0), *(Fraction(max(of), size[b]) for b, of in fixed.items())]
        if capacity:
            found.append(Fraction(total, capacity))
        if self._item is not None:
            may, loads = self._item
            found.append(min(Fraction(max(map(sum, zip(fixed[b], loads, strict=True))), size[b]) for b in may))
        elif self._claim.partition is not None:
            said = "is none that has a load by hour and a choice"
            self._faults.add(HOURLY, f"partition {self._claim.partition} of the problem {said}")
        return max(found)


def unpacked(packed: int, hours: int) -> memoryview:
    """The numbers of all hours that one number holds."""
    return memoryview(packed.to_bytes(hours * BITS // 8, "little")).cast("q")


def _row(lanes: _Lanes, hours: int) -> list[int]:
    row = [0] * hours
    for lane, weight in lanes:
        row[lane] = weight
    return row


def _weights(problem: Problem, hours: Sequence[int], claim: HourlyClaim, faults: Faults) -> Mapping[int, _Lanes]:
    """The weights above 0 by broker, each with the place of its hour; none where something is wrong with them."""
    lanes = {str(hour): lane for lane, hour in enumerate(hours)}
    free = {str(b.id): b.id for b in problem.brokers if b.open}
    found: dict[int, list[tuple[int, int]]] = {}
    for hour, by_broker in claim.weights.items():
        if hour not in lanes:
            faults.add(HOURLY, f"hour {hour!r} has weights, and the loads do not know it")
            continue
        if not isinstance(by_broker, dict):
            faults.add(HOURLY, f"hour {hour!r} has no object of broker ids and whole numbers")
            continue
        for broker, weight in by_broker.items():
            _judge(f"broker {broker!r} in hour {hour}", broker in free, weight, faults)
            if broker in free and weight:
                found.setdefault(free[broker], []).append((lanes[hour], weight))
    if claim.move_weight and problem.max_moves is None:
        faults.add(HOURLY, f"a changed leader has the weight {claim.move_weight}, and the problem has no maxMoves")
    return {} if faults.any(HOURLY) else {broker: tuple(of) for broker, of in found.items()}


def _judge(name: str, is_open: bool, weight: Any, faults: Faults) -> None:
    if not isinstance(weight, int) or isinstance(weight, bool) or not 0 <= weight <= LARGEST:
        faults.add(HOURLY, f"{name} has the weight {weight!r}: expected a whole number, 0 or more")
    elif not is_open:
        faults.add(HOURLY, f"{name} has a weight and is no open broker of the problem")
