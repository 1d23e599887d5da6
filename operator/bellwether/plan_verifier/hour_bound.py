"""Lower bound on the busiest broker-hour, from weights by hour and broker, in one pass through the loads by hour.

Weak duality as in ``load_bounds``, with a term for each hour: weights w on open brokers in hours give
sum(w * load) <= T * sum(w * capacity), and each partition adds at least what its cheapest leader does. T is also at
least what a broker carries in an hour in any case, and what the leader of one partition, which the plan names, does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from bellwether.plan_verifier.check_report import Faults
from bellwether.plan_verifier.plan_documents import LARGEST, HourlyClaim, Problem

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
        self._weights = _weights(problem, hours, claim, faults)
        self._fixed = {b.id: 0 for b in problem.brokers}
        self._total = 0
        self._item: tuple[Sequence[int], list[int]] | None = None

    def add(
        self,
        at: int,
        name: str,
        replicas: Sequence[int],
        may: Sequence[int],
        leader: int,
        byte: int,
        costs: tuple[int, int],
        rates: tuple[memoryview, memoryview | None],
    ) -> None:
        """Add the partition in row ``at`` of the problem, which one of ``may`` must lead; its rates are valid.

        ``byte``: what a byte costs its leader. ``costs``: of all hours, to lead and to follow, 64 bits an hour.
        """
        asked, (produce, consume) = self._problem, rates
        extra = byte - asked.follow
        alone = len(may) == 1 and leader == may[0]
        if extra < 0 and may and not alone and any(load < 0 for load in self._loads(extra, rates)):
            self._faults.add(HOURLY, f"{name} would cost less to lead than to follow in an hour: nothing is proved")
            return
        for broker in replicas:
            self._fixed[broker] += costs[0] if alone and broker == leader else costs[1]
        if at == self._claim.partition and not alone and may:
            self._item = may, list(self._loads(extra, rates))
        least = None
        for broker in replicas:
            ins = outs = 0
            for lane, weight in self._weights.get(broker, ()):
                ins += weight * produce[lane]
                outs += weight * consume[lane] if consume is not None else 0
            self._total += asked.follow * ins
            if broker in may:
                price = extra * ins + asked.consume * outs + self._claim.move_weight * (broker != leader)
                least = price if least is None else min(least, price)
        self._total += least or 0

    def proved(self, allowed: int | None) -> Fraction:
        """The bound if at most ``allowed`` leaders may change; None for any number."""
        size = {b.id: b.capacity for b in self._problem.brokers if b.open}
        capacity = sum(weight * size[b] for b, lanes in self._weights.items() for _, weight in lanes)
        total = self._total - self._claim.move_weight * (allowed or 0)
        fixed = {b: list(unpacked(self._fixed[b], self._hours)) for b in size}
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

    def _loads(self, extra: int, rates: tuple[memoryview, memoryview | None]) -> Iterator[int]:
        """What leading costs more than following, by hour."""
        produce, consume = rates
        for lane, rate in enumerate(produce):
            yield extra * rate + (self._problem.consume * consume[lane] if consume is not None else 0)


def unpacked(packed: int, hours: int) -> Iterator[int]:
    """The numbers of all hours that one number holds."""
    return iter(memoryview(packed.to_bytes(hours * BITS // 8, "little")).cast("q"))


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
