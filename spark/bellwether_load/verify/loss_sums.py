"""Recompute what a plan claims of losses: loads after each loss, before and after the plan, and the bounds.

In: each partition with its leaders and orders. Out: what is wrong. ``loss_bound`` says why a bound holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.verify.checks import Faults, close
from bellwether_load.verify.loss_bound import Domain, LossCase, LossRow, LossWeights, loss_bound

LOSSES = "losses"


class LossSums:
    """Sums over partitions, for the kinds of loss that a plan claims something of."""

    def __init__(self, problem: ProblemHeader, claimed: PlanLosses, faults: Faults) -> None:
        self._claimed, self._faults = claimed, faults
        self._brokers = problem.brokers
        self._open = frozenset(b.id for b in problem.brokers if b.open)
        self._domains: dict[str, dict[int, Domain | None]] = {
            "broker": {b.id: b.id for b in problem.brokers},
            "rack": {b.id: b.rack or None for b in problem.brokers},
        }
        kinds = [loss.kind for loss in claimed.kinds]
        if len(set(kinds)) < len(kinds) or not set(kinds) <= set(self._domains):
            faults.add(LOSSES, f"kinds are {kinds}: expected broker and rack, each once at most")
        self._kinds = [kind for kind in dict.fromkeys(kinds) if kind in self._domains]
        self._fallen: dict[tuple[str, int, Domain, int], int] = {}
        self._rows: list[LossRow] = []

    def add(
        self, replicas: Sequence[int], isr: Sequence[int], leaders: tuple[int, int], order: Sequence[int], load: int,
        may: Sequence[int],
    ) -> None:  # fmt: skip
        """Add a partition: its order and leader before and after, its load, and who may lead it; none if it stays."""
        able = [[b for b in of if b in self._open and b in isr] for of in (replicas, order)]
        fixed = not may or len(able[0]) < 2
        self._rows.append(LossRow(load, able[0], may, leaders[1] if fixed else None))
        if load:
            for kind in self._kinds:
                domains = self._domains[kind]
                for when, leader in enumerate(leaders):
                    home = domains.get(leader)
                    heir = next((b for b in able[when] if b != leader and domains[b] != home), None)
                    if home is not None and heir is not None:
                        at = (kind, when, home, heir)
                        self._fallen[at] = self._fallen.get(at, 0) + load

    def judge(self, base: Mapping[int, int], carried: Sequence[Mapping[int, int]], highest: Fraction) -> None:
        """Compare all that is claimed. ``carried``: load of each broker before and after; ``base``: of following;
        ``highest``: relative load of the busiest broker after the plan."""
        for loss in self._claimed.kinds:
            if loss.kind not in self._kinds:
                continue
            for when, (name, said) in enumerate((("before", loss.before), ("after", loss.after))):
                loads = dict(self._loads(loss.kind, when, carried[when]))
                self._faults.add(LOSSES, *_worst(f"{loss.kind} {name}", said, loads))
            self._bound(loss, base, highest)

    def _loads(self, kind: str, when: int, carried: Mapping[int, int]) -> Iterator[tuple[tuple[str, int], Fraction]]:
        """Relative load of each survivor of each loss."""
        domains = self._domains[kind]
        for lost in dict.fromkeys(domain for domain in domains.values() if domain is not None):
            for b in self._brokers:
                if b.open and domains[b.id] != lost:
                    fallen = self._fallen.get((kind, when, lost, b.id), 0)
                    yield (str(lost), b.id), Fraction(carried[b.id] + fallen, b.capacity)

    def _bound(self, loss: PlanLoss, base: Mapping[int, int], limit: Fraction) -> None:
        names = {str(domain): domain for domain in self._domains[loss.kind].values() if domain is not None}
        threshold = None if loss.threshold is None else Fraction(loss.threshold)
        try:
            lost = {names[name]: of for name, of in loss.lost_weights.items()}
            size = {b.id: b.capacity for b in self._brokers if b.open}
            case = LossCase(size, {b: base[b] for b in size}, self._domains[loss.kind], limit)
            found = loss_bound(case, self._rows, LossWeights(lost, loss.normal_weights, threshold))
        except KeyError as error:
            self._faults.add(LOSSES, f"{loss.kind}: weights name {error}, which is no broker or rack of the problem")
        except ValueError as error:
            self._faults.add(LOSSES, f"{loss.kind}: {error}")
        else:
            if not close(loss.bound, found):
                self._faults.add(LOSSES, f"{loss.kind}: bound is {loss.bound!r}, the files give {float(found)!r}")


def _worst(what: str, said: WorstLoss, loads: Mapping[tuple[str, int], Fraction]) -> Iterator[str]:
    most = max(loads.values(), default=Fraction(0))
    if not close(said.load, most):
        yield f"{what}: load is {said.load!r}, the files give {float(most)!r}"
    found = loads.get((said.lost, said.broker))
    if found is None or not close(float(found), most):
        yield f"{what}: the loss of {said.lost} is not the worst for broker {said.broker}"
