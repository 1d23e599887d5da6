"""Rebalance plan: its moves, its quality with a proof, and what it rests on.

Made by the plan job, verified by the verifier, shown in status and on the page, approved by its digest. The moves may
be millions, so they are stored apart from the plan's summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from bellwether.core.settings.objective import Objective
from bellwether.core.settings.rebalance import Rebalance
from bellwether_load.plan.certificate import Certificate
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.forecast import Forecast
from bellwether_load.plan.plan_losses import PlanLosses

BY_HAND = "offline/rebalance"
"""Policy name in problems and plans of a rebalance without Kubernetes."""

_ROUNDED = 1e-12


@dataclass(frozen=True, slots=True)
class LoadBalance:
    """Distribution of load over the eligible brokers, in bytes/s per ``WHOLE`` units of capacity.

    ``mean`` is their total load over their total capacity; ``spread`` is max / mean - 1.
    """

    max: float
    mean: float
    spread: float

    @classmethod
    def of(cls, loads: Sequence[tuple[int, float]]) -> LoadBalance:
        """The distribution of relative loads, each with the capacity of its broker."""
        top, size = max((load for _, load in loads), default=0.0), sum(capacity for capacity, _ in loads)
        mean = sum(capacity * load for capacity, load in loads) / size if size else 0.0
        return cls(top, mean, top / mean - 1 if mean else 0.0)


@dataclass(frozen=True, slots=True)
class MoveTotals:
    """Sums over the moves: leader changes, order changes, moved load, and the minimum load that any such plan must
    move.

    ``load`` and ``lower_bound`` are in hundredths of a byte/s.
    """

    partitions: int
    reordered: int
    load: int
    lower_bound: int


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """A broker's load before and after, in bytes/s per ``WHOLE`` units of capacity."""

    id: int
    rack: str | None
    capacity: int
    open: bool
    before: float
    after: float


@dataclass(frozen=True)
class RebalancePlan:
    """Content of ``plan.json``: policy, problem, the certificate, sums, loads of brokers, and the forecast.

    ``partitions``, ``without_load``, ``without_consumption`` (a load, in which consumption counts as 0), ``held`` and
    ``without_requests`` (likewise, where requests count) count those of the problem. ``evidence``: what the loads rest
    on. ``forecast`` is None where they have no hours, ``losses`` where no broker survives another.
    """

    cluster_id: str
    policy: str
    made_at: datetime
    problem_digest: str
    digest: str
    objective: Objective
    certificate: Certificate
    moved: MoveTotals
    partitions: int
    without_load: int
    without_consumption: int
    held: int
    brokers: tuple[BrokerLoad, ...]
    evidence: Evidence
    forecast: Forecast | None
    losses: PlanLosses | None = None
    without_requests: int = 0

    @cached_property
    def before(self) -> LoadBalance:
        """The load of the open brokers before the plan."""
        return LoadBalance.of([(b.capacity, b.before) for b in self.brokers if b.open])

    @cached_property
    def after(self) -> LoadBalance:
        """Their load after it."""
        return LoadBalance.of([(b.capacity, b.after) for b in self.brokers if b.open])

    @property
    def gap(self) -> float | None:
        """How far the busiest broker is above its bound, as a ratio minus 1; None where the bound is 0 and that is
        not."""
        if not self.certificate.bound:
            return None if self.after.max else 0.0
        gap = self.after.max / self.certificate.bound - 1
        return gap if gap > _ROUNDED else 0.0

    @property
    def evidence_line(self) -> str:
        """How much was measured: the first line of everything that shows the plan."""
        return self.evidence.line(self.partitions, self.without_load, self.unmeasured)

    @property
    def losses_line(self) -> str:
        """What the loss of a broker and of a rack does; empty where it is not known."""
        return self.losses.line(self.after.max, capped=self.objective.max_moves is not None) if self.losses else ""

    def missing(self, least: Rebalance) -> str:
        """What is missing for a proposal; empty where enough is measured."""
        return self.evidence.missing(least, self.partitions, self.without_load)

    @property
    def unmeasured(self) -> int:
        """Number of partitions whose consumption should weigh and is not measured."""
        return self.without_consumption if self.objective.consumption else 0
