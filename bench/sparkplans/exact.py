"""Plans of small clusters next to the exact optimum that HiGHS finds, and losses of clusters that are too large for it.

Each small cluster is planned three times: freely, with a cap on moves, and by hour. The free plan gives its losses,
too: there the optimum is over all leaders and orders whose busiest broker is as low as the plan's.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from bellwether_load.jobs.compute_plan import compute_plan, write_plan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_verification import recheck
from sparkplans.instances import Case, Instance, by_hour, instance, leading_costs, write

if TYPE_CHECKING:
    from bellwether_load.plan.rebalance_plan import RebalancePlan

Int64s = NDArray[np.int64]
KINDS = ("statistic", "cap", "hours", "broker lost", "rack lost")
HOURS = 24
LARGER = ((300, 9), (400, 12), (800, 12), (1_600, 18))
"""Partitions and brokers of the clusters whose losses have no exact optimum, four of each."""
ROUNDED = 1e-6
"""What HiGHS, and a bound as a double, may be off."""


@dataclass(frozen=True)
class Compared:
    """A figure of one plan, its ``bound``, and the ``optimum``; ``least``: what HiGHS proved of the optimum."""

    kind: str
    plan: float
    bound: float
    optimum: float
    least: float
    verified: bool

    @property
    def gap(self) -> float:
        """How far the plan is above the best that is known."""
        return self.plan / min(self.plan, self.optimum) - 1

    @property
    def bound_gap(self) -> float:
        """How far the best that is known is above the bound."""
        return max(min(self.plan, self.optimum) / self.bound - 1, 0.0)

    @property
    def false(self) -> bool:
        """Whether there is a plan below the bound."""
        return self.optimum < self.bound * (1 - ROUNDED)


@dataclass(frozen=True)
class Columns:
    """Alternatives of partitions, and the columns that they load. ``partition``: of each alternative. ``row``,
    ``alternative``, ``load``: entries. ``fixed``, ``size``: of each column; one of size 0 may not be above 0."""

    partition: Int64s
    row: NDArray[np.integer]
    alternative: Int64s
    load: NDArray[Any]
    fixed: NDArray[Any]
    size: Int64s

    def limited(self, row: NDArray[np.integer], alternative: Int64s, load: NDArray[Any], room: NDArray[Any]) -> Columns:
        """With columns more that have only so much room."""
        joined = (
            np.concatenate(of)
            for of in (
                (self.row, row + len(self.size)), (self.alternative, alternative), (self.load, load),
                (self.fixed, -room), (self.size, np.zeros(len(room), np.int64)),
            )
        )  # fmt: skip
        return Columns(self.partition, *joined)


def lowest_column(of: Columns, seconds: float = 60) -> tuple[float, float]:
    """The lowest that the highest (fixed + load) / size of a column can be, to 0.1 %; and what is proved of it if the
    seconds are too few. Infinite where no answer is found."""
    unit, count, columns = max(float(of.load.mean()), 1.0), len(of.partition), len(of.size)
    entries = coo_array((of.load / unit, (of.row, of.alternative)), shape=(columns, count + 1))
    highest = coo_array((-of.size / 100, (np.arange(columns), np.full(columns, count))), shape=entries.shape)
    once = coo_array((np.ones(count), (of.partition, np.arange(count))), shape=(of.partition.max() + 1, count + 1))
    limits = LinearConstraint((entries + highest).tocsr(), -np.inf, -of.fixed / unit)
    found = milp(
        np.append(np.zeros(count), 1),
        constraints=[limits, LinearConstraint(once.tocsr(), 1, 1)],
        bounds=Bounds(0, np.append(np.ones(count), np.inf)),
        integrality=np.append(np.ones(count), 0),
        options={"mip_rel_gap": 1e-3, "time_limit": seconds},
    )
    least = 0.0 if found.mip_dual_bound is None else float(found.mip_dual_bound)
    return math.inf if found.x is None else float(found.x[-1]) * unit / 100, least * unit / 100


def compared(numbers: Iterable[int], seed: int) -> Iterator[Compared]:
    """These small clusters, five figures each."""
    for number in numbers:
        dice = np.random.default_rng((seed, number))
        case = Case(int(dice.integers(12, 31)), int(dice.choice([6, 9])), "uneven" if number % 2 else "even")
        capped = replace(case, max_moves=int(dice.integers(1, 6)))
        for one in (case, capped, replace(case, hours=HOURS)):
            found = instance(one, seed + number)
            plan, verified = _planned(found)
            for kind, value, bound in _figures(plan):
                yield Compared(kind, value, bound, *_optimum(found, kind, plan.after.max), verified)


def losses_of_larger(seed: int) -> Iterator[tuple[Case, RebalancePlan]]:
    """Sixteen clusters, with their plans."""
    for number in range(16):
        case = Case(*LARGER[number % 4], "uneven" if number % 2 else "even")
        yield case, _planned(instance(case, seed + number))[0]


def _planned(found: Instance) -> tuple[RebalancePlan, bool]:
    name = found.case.name
    with tempfile.TemporaryDirectory(prefix="sparkplans-") as folder:
        write(Store.open(folder), found)
        made = compute_plan(folder, name, name)
        written = write_plan(folder, made)
        problem, loads, plan = (Store.open(f"{folder}/{at}") for at in (f"problems/{name}", f"loads/{name}", written))
        return made.plan, recheck(problem, loads, plan).passed


def _figures(plan: RebalancePlan) -> Iterator[tuple[str, float, float]]:
    hourly, certificate = plan.certificate.hourly, plan.certificate
    if hourly is not None and plan.forecast is not None:
        yield "hours", plan.forecast.after.load, hourly.bound
    elif plan.objective.max_moves is not None:
        yield "cap", plan.after.max, certificate.bound
    else:
        yield "statistic", plan.after.max, certificate.bound
        for loss in plan.losses.kinds if plan.losses else ():
            yield f"{loss.kind} lost", loss.after.load, loss.bound


def _optimum(found: Instance, kind: str, limit: float) -> tuple[float, float]:
    """The lowest figure of any plan, and what is proved of it; for losses of plans within the limit."""
    (loads, base), size, replicas = leading_costs(found), found.capacity, found.replicas
    count, width, brokers = *replicas.shape, len(size)
    if kind in ("statistic", "cap"):
        partition, spot = np.divmod(np.arange(count * width), width)
        row, load, fixed, unit = replicas.ravel(), loads[partition], base, float(loads.mean())
        columns = Columns(partition, row, np.arange(len(row)), load, fixed, size)
        if kind == "cap":
            moved, most = np.flatnonzero(spot > 0), found.case.max_moves or 0
            columns = columns.limited(np.full(len(moved), 0), moved, np.full(len(moved), unit), np.array([most * unit]))
        return lowest_column(columns)
    if kind == "hours":
        produce, consume = (by_hour(rate, HOURS) for rate in (found.rates, found.rates * 0.5))
        follow, lead = 100 * produce, 100 * (width * produce + consume)
        base_by_hour = np.zeros((brokers, HOURS))
        np.add.at(base_by_hour, replicas, follow[:, None, :])
        alternative, hour = np.divmod(np.arange(count * width * HOURS), HOURS)
        partition = np.arange(count * width) // width
        load = (lead - follow)[partition[alternative], hour]
        row = replicas.ravel()[alternative] * HOURS + hour
        return lowest_column(Columns(partition, row, alternative, load, base_by_hour.ravel(), np.repeat(size, HOURS)))
    domain = np.arange(brokers) % 3 if kind == "rack lost" else np.arange(brokers)
    pairs = np.array([(i, j) for i in range(width) for j in range(width) if i != j])
    leader, heir = (replicas[:, pairs[:, at]].ravel() for at in (0, 1))
    partition = np.repeat(np.arange(count), len(pairs))
    alternative, lost = np.divmod(np.arange(len(leader) * (domain.max() + 1)), domain.max() + 1)
    carries = np.where(domain[leader[alternative]] == lost, heir[alternative], leader[alternative])
    # A column of a broker that is lost itself has no entries, and is never the highest.
    fixed, sizes = np.tile(base, domain.max() + 1), np.tile(size, domain.max() + 1)
    every = Columns(partition, lost * brokers + carries, alternative, loads[partition[alternative]], fixed, sizes)
    room = np.array([int(Fraction(limit) * int(of)) for of in size]) - base
    return lowest_column(every.limited(leader, np.arange(len(leader)), loads[partition], room))


def table(rows: Sequence[Compared]) -> Table:
    """A row for each kind."""
    made = Table(title="Plans, bounds and exact optima of small clusters")
    heads = ("kind", "instances", "plan above optimum: worst", "median", "optimum above bound: worst", "median")
    for head in (*heads, "false bounds", "verified", "optimum known"):
        made.add_column(head, justify="left" if head == "kind" else "right")
    for kind in KINDS:
        of = [row for row in rows if row.kind == kind]
        gaps, bounds = [row.gap for row in of], [row.bound_gap for row in of]
        known = sum(row.least >= row.optimum * (1 - 2e-3) for row in of)
        figures = (max(gaps), median(gaps), max(bounds), median(bounds))
        counts = (sum(row.false for row in of), sum(row.verified for row in of), known)
        made.add_row(kind, str(len(of)), *(f"{figure:.2%}" for figure in figures), *map(str, counts))
    return made


def larger_table(plans: Sequence[tuple[Case, RebalancePlan]]) -> Table:
    """A row for each cluster."""
    made = Table(title="Losses of sixteen clusters: how far the worst is above its bound")
    for head in ("partitions", "brokers", "kind", "changed leaders", "reorders", "broker lost", "rack lost"):
        made.add_column(head, justify="left" if head == "kind" else "right")
    for case, plan in plans:
        gaps = [f"{loss.gap or 0:.1%}" for loss in plan.losses.kinds] if plan.losses else []
        moved = plan.moved
        made.add_row(
            str(case.partitions), str(case.brokers), case.kind, str(moved.partitions), str(moved.reordered), *gaps
        )
    return made
