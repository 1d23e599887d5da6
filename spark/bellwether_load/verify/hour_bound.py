"""Lower bound on the busiest broker-hour, from weights by hour and broker, in one pass through the loads by hour.

Weak duality as in ``load_bounds``, with a term for each hour: weights w on open brokers in hours give
sum(w * load) <= T * sum(w * capacity), and each partition adds at least what its cheapest leader does. T is also at
least what a broker carries in an hour in any case, and what the leader of one partition, which the plan names, does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd
from operator import mul

from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.verify.checks import Faults
from bellwether_load.verify.load_rows import BITS, unpacked

HOURLY = "bound by hour"


class HourBound:
    """Sums over partitions for what a plan claims of the hours; ``hours`` are those of the week that loads know.

    A load has a lane for the bytes in each hour, and where requests count then one for the requests in each hour.
    """

    def __init__(self, problem: ProblemHeader, hours: Sequence[int], claim: HourlyProof, faults: Faults) -> None:
        counted = problem.objective.request_bytes > 0
        self._hours = len(hours)
        self._lanes = self._hours * (1 + counted)
        self._signs = sum(1 << BITS * lane + BITS - 1 for lane in range(self._lanes))
        self._claim = claim
        self._faults = faults
        # By resource; of both each broker has one.
        self._sizes = {b.id: (b.capacity, b.request_capacity)[: 1 + counted] for b in problem.brokers if b.open}
        found: dict[int, dict[int, int]] = {}
        if claim.request_weights and not counted:
            faults.add(HOURLY, "requests have weights, and objective.requestBytes of the problem is 0")
        by_resource = ((0, claim.weights), (self._hours, claim.request_weights if counted else {}))
        for first, hour, by_broker in ((first, *item) for first, weights in by_resource for item in weights.items()):
            if hour not in hours:
                faults.add(HOURLY, f"hour {hour} has weights, and the loads do not know it")
                continue
            for b, weight in by_broker.items():
                if b not in self._sizes:
                    faults.add(HOURLY, f"broker {b} in hour {hour} has a weight and is no open broker of the problem")
                elif weight:
                    found.setdefault(b, {})[first + hours.index(hour)] = weight
        if claim.move_weight and problem.objective.max_moves is None:
            said = f"a changed leader has the weight {claim.move_weight}, and the problem has no maxMoves"
            faults.add(HOURLY, said)
        lanes = sorted({lane for row in found.values() for lane in row}) or [0]
        self._used = range(lanes[0], lanes[-1] + 1, gcd(*(lane - lanes[0] for lane in lanes)) or 1)
        self._slice = slice(self._used.start, self._used.stop, self._used.step)
        self._weights = {b: [row.get(lane, 0) for lane in self._used] for b, row in found.items()}
        self._alone = dict.fromkeys(self._sizes, 0)
        self._total = 0
        self._item: tuple[Sequence[int], Sequence[int]] | None = None

    def add(self, at: int, key: tuple[str, str, int], may: Sequence[int], leader: int, extra: int) -> None:
        """Add the partition in row ``at`` of the problem, which one of ``may`` must lead.

        ``extra``: what leading it costs beyond following, in each hour.
        """
        if len(may) == 1 and leader == may[0]:
            self._alone[leader] += extra
            return
        if extra < 0 or extra & self._signs:
            said = "would cost less to lead than to follow in an hour: nothing is proved"
            self._faults.add(HOURLY, f"{key[0]}-{key[2]} {said}")
        if self._faults.any(HOURLY):
            return
        loads = unpacked(extra, self._lanes)
        if at == self._claim.partition:
            self._item = may, loads.tolist()
        change = self._claim.move_weight
        if self._weights:
            used, none = loads[self._slice].tolist(), ()
            self._total += min(
                [sum(map(mul, self._weights.get(b, none), used)) + (change if b != leader else 0) for b in may]
            )

    def proved(self, base: Mapping[int, int], allowed: int | None) -> Fraction:
        """The bound if at most ``allowed`` leaders may change; None for any number. ``base``: what following costs each
        broker in each hour."""
        fixed = {b: unpacked(base[b] + self._alone[b], self._lanes).tolist() for b in self._sizes}
        total = self._total - self._claim.move_weight * (allowed or 0)
        total += sum(sum(map(mul, row, fixed[b][self._slice])) for b, row in self._weights.items())
        found = [Fraction(0), *(self._highest(b, of) for b, of in fixed.items())]
        if capacity := sum(sum(map(mul, row, self._by_lane(b))) for b, row in self._weights.items()):
            found.append(Fraction(total, capacity))
        if self._item is not None:
            may, loads = self._item
            found.append(min(self._highest(b, list(map(sum, zip(fixed[b], loads, strict=True)))) for b in may))
        elif self._claim.partition is not None:
            said = "is none that has a load by hour and a choice"
            self._faults.add(HOURLY, f"partition {self._claim.partition} of the problem {said}")
        return max(found)

    def _highest(self, broker: int, carried: Sequence[int]) -> Fraction:
        """The highest relative load of a broker in any hour and resource."""
        of = (carried[: self._hours], carried[self._hours :])
        return max(Fraction(max(loads), size) for loads, size in zip(of, self._sizes[broker], strict=False))

    def _by_lane(self, broker: int) -> list[int]:
        """Its capacity in each lane that has a weight on any broker."""
        return [self._sizes[broker][lane // self._hours] for lane in self._used]
