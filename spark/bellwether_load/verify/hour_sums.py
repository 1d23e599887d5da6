"""Loads of brokers by hour, and the lower bound on the busiest broker-hour, in one pass through the loads by hour.

Weak duality as in ``load_bounds``, with a term for each hour: weights w on open brokers in hours give
sum(w * load) <= T * sum(w * capacity), and each partition adds at least what its cheapest leader does. T is also at
least what a broker carries in an hour in any case, and what the leader of one partition, which the plan names, does.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from bellwether.core.settings.objective import WHOLE
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.checks import Faults, highest
from bellwether_load.plan.partition_rows import MOST, Bools, Int32s, Ints, Rows
from bellwether_load.plan.problem import ProblemHeader

HOURS = "loads by hour"
HOURLY = "bound by hour"

HourBlock = tuple[Ints, Ints, Ints | None, Bools | None]
"""Some rows of the loads, a column for each hour: bytes/s in and out, hundredths of a request/s, and whether these are
measured; the last two None where they do not count."""


class HourSums:
    """Sums for a plan, a column for the bytes in each hour, and then one for the requests in each where they count.

    ``before``, ``after``: of each broker; ``fixed``: what it carries in any case.
    """

    def __init__(
        self,
        problem: ProblemHeader,
        rows: Rows,
        leader: Int32s,
        hours: tuple[int, ...],
        claim: HourlyProof | None,
        faults: Faults,
    ) -> None:
        """``leader``: of each partition after the plan."""
        self._leader = leader
        self._rows, self._claim, self._faults, self._asked = rows, claim, faults, problem.objective
        resources = 1 + (problem.objective.request_bytes > 0)
        sizes = np.array([(b.capacity, b.request_capacity)[:resources] for b in rows.listed], np.int64)
        self.hours, self.size = hours, np.repeat(sizes, len(hours), axis=1)
        self.before, self.after, self.fixed = np.zeros((3, rows.brokers + 1, self.size.shape[1]), np.int64)
        self.without_requests = 0
        self._weights, self._total, self._most = np.zeros_like(self.before), 0, np.zeros(self.size.shape[1])
        self._item: tuple[Int32s, Ints] | None = None
        if claim is not None:
            self._read(claim, resources)

    def _read(self, claim: HourlyProof, resources: int) -> None:
        add, ids = self._faults.add, self._rows.ids.tolist()
        if claim.request_weights and resources == 1:
            add(HOURLY, "requests have weights, and objective.requestBytes of the problem is 0")
        for resource, weights in enumerate((claim.weights, claim.request_weights)[:resources]):
            for hour, by_broker in weights.items():
                if hour not in self.hours:
                    add(HOURLY, f"hour {hour} has weights, and the loads do not know it")
                    continue
                column = resource * len(self.hours) + self.hours.index(hour)
                for b, weight in by_broker.items():
                    if b not in ids or not self._rows.open[ids.index(b)]:
                        add(HOURLY, f"broker {b} in hour {hour} has a weight and is no open broker of the problem")
                    else:
                        self._weights[ids.index(b), column] = weight
        if claim.move_weight and self._asked.max_moves is None:
            add(HOURLY, f"a changed leader has the weight {claim.move_weight}, and the problem has no maxMoves")

    def add_all(self, blocks: Iterable[HourBlock]) -> None:
        """Add the loads, in the order of their rows."""
        start = 0
        for produce, consume, requests, known in blocks:
            place = self._rows.rates.place[start : start + len(produce)]
            start, there = start + len(place), (place >= 0) & self._rows.rates.known[place]
            if requests is not None and known is not None:
                self.without_requests += int((there & ~known).sum())
            rates = [rate for rate in (produce, consume, requests) if rate is not None]
            for rate, power in zip(rates, (45, 45, 30), strict=False):
                odd = place[there & ((rate < 0) | (rate > 2**power)).any(axis=1)]
                if len(odd):
                    said = f"needs {len(self.hours)} rates by hour from 0 to 2**{power}"
                    self._rows.table.wrong(np.isin(np.arange(len(self._rows)), odd), said, HOURS)
            if self._faults.any(HOURS):
                return
            self._add(place[there], *(rate[there] for rate in rates))

    def _add(self, at: Ints, produce: Ints, consume: Ints, requests: Ints | None = None) -> None:
        rows, none = self._rows, self._rows.brokers
        follow, count = WHOLE * produce, (rows.replicas[at] < none).sum(axis=1)[:, None]
        load = (count - 1) * follow + WHOLE * consume * self._asked.consumption
        if requests is not None:
            load, follow = (
                np.hstack([load, self._asked.request_bytes * requests]),
                np.hstack([follow, np.zeros_like(follow)]),
            )
        self._most += load.sum(axis=0, dtype=np.float64) + (count * follow).sum(axis=0, dtype=np.float64)
        if (self._most > MOST).any():
            self._faults.add(HOURS, "they add up to more than 2**53 hundredths of a byte/s in an hour")
            return
        for replica in rows.replicas[at].T:
            _add_rows(replica, follow, self.before, self.after, self.fixed)
        _add_rows(rows.leader[at], load, self.before)
        _add_rows(self._leader[at], load, self.after)
        sole = rows.sole[at]
        _add_rows(rows.leader[at[sole]], load[sole], self.fixed)
        if self._claim is not None:
            free = ~sole & (self._rows.eligible[at] < none).any(axis=1)
            self._price(at[free], load[free], self._claim)

    def _price(self, at: Ints, load: Ints, claim: HourlyProof) -> None:
        """Add what each partition pays with its cheapest leader."""
        if (item := np.flatnonzero(at == claim.partition)).size:
            self._item = self._rows.eligible[claim.partition], load[item[0]]
        used = np.flatnonzero(self._weights.any(axis=0))
        weights, some = self._weights[:, used], load[:, used]
        most = weights.sum(axis=1, dtype=np.float64).max() * float(some.max(initial=0)) + claim.move_weight
        exact, limit = (np.int64, 2**62) if most < 2.0**62 else (object, 2**200)
        weights, some = weights.astype(exact), some.astype(exact)
        change, never = np.array(claim.move_weight, exact), np.array(limit, exact)
        costs = [
            np.where(
                b < self._rows.brokers, (weights[b] * some).sum(axis=1) + change * (b != self._rows.leader[at]), never
            )
            for b in self._rows.eligible[at].T
        ]
        self._total += sum(np.minimum.reduce(costs).tolist())

    def bound(self, allowed: int | None) -> Fraction:
        """What is proved if at most ``allowed`` leaders may change; None: any number."""
        claim, open_ = self._claim, np.flatnonzero(self._rows.open)
        weights, fixed = (of[open_].astype(object) for of in (self._weights, self.fixed))
        found = [highest(self.fixed[open_], self.size[open_])]
        if capacity := int((weights * self.size[open_]).sum()):
            change = 0 if claim is None else claim.move_weight * (allowed or 0)
            found.append(Fraction(int((weights * fixed).sum()) + self._total - change, capacity))
        if self._item is not None:
            may, load = self._item
            found.append(min(highest(self.fixed[b] + load, self.size[b]) for b in may if b < self._rows.brokers))
        elif claim is not None and claim.partition is not None:
            said = "is none that has a load by hour and a choice"
            self._faults.add(HOURLY, f"partition {claim.partition} of the problem {said}")
        return max(found)


def _add_rows(broker: Int32s, load: Ints, *sums: Ints) -> None:
    """Add rows to those of their brokers."""
    order = np.argsort(broker, kind="stable")
    who, first = np.unique(broker[order], return_index=True)
    if len(who):
        added = np.add.reduceat(load[order], first, axis=0)
        for of in sums:
            of[who] += added
