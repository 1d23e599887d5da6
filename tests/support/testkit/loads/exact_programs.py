"""The exact linear and integer program of a small planning problem, by HiGHS: what plans and bounds are compared with.

Written straight from the definition, with a column for every partition and every broker that may lead it; it shares
nothing with the planner. And random problems with everything that makes planning hard, from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array

from bellwether_load.balancing.blocks import Block, Brokers, Int64s
from testkit.loads.small_problems import block, brokers

INFEASIBLE = 2
"""Status of HiGHS in scipy."""


def hard_problem(seed: int, most_partitions: int = 60) -> tuple[Brokers, Block]:
    """Unequal and closed brokers, skewed replicas, held load, hot partitions, some without leader or choice."""
    dice = np.random.default_rng(seed)
    count = int(dice.integers(3, 9))
    closed = [b for b in range(count) if dice.random() < 0.1][: count - 1]
    skew = dice.exponential(1, count) ** dice.choice([0.3, 1, 2]) + 1e-6
    held = dice.integers(0, 800, count) * (dice.random(count) < 0.4)
    if dice.random() < 0.3:
        held[dice.integers(count)] += int(dice.integers(2000, 60_000))
    tail, rows = dice.choice([0.8, 1.2, 2.5]), []
    for _ in range(int(dice.integers(8, most_partitions))):
        replicas = dice.choice(count, int(dice.choice([1, 2, 3, 3, 3])), replace=False, p=skew / skew.sum()).tolist()
        load = int(min(dice.pareto(tail) * 300 + 1, 50_000)) * (30 if dice.random() < 0.01 else 1)
        able = [b for b in replicas if b not in closed]
        homeless = replicas[0] in closed or dice.random() < 0.03
        if len(able) == 1 and not homeless:
            held[able[0]] += load
        elif able:
            rows.append((load, able, None if homeless else replicas[0]))
    return (
        brokers(
            count,
            capacity=dice.choice([50, 100, 100, 100, 300], count).tolist(),
            base=dice.integers(0, 2000, count).tolist(),
            fixed=held.tolist(),
            closed=closed,
        ),
        block(count, rows),
    )


def fewest(of: Brokers, whole: Block, limits: Int64s, *, divisible: bool = False) -> float:
    """The fewest partitions that leave their home where no broker is to have more load than its limit."""
    columns = [(p, int(b)) for p, row in enumerate(whole.eligible) for b in row if b < whole.brokers]
    partitions, unit = len(whole), max(1.0, float(whole.loads.mean()))
    rows = lil_array((partitions + whole.brokers, len(columns)))
    for at, (p, b) in enumerate(columns):
        rows[p, at] = 1
        rows[partitions + b, at] = whole.loads[p] / unit
    room = np.where(of.open, limits - of.fixed, 0) / unit + 1e-9
    # Whole or divided, a partition cannot be where it is heavier than what is left.
    fits = [whole.loads[p] <= limits[b] - of.fixed[b] for p, b in columns]
    found = milp(
        np.array([float(b != whole.home[p]) for p, b in columns]),
        constraints=LinearConstraint(
            rows.tocsr(),
            np.append(np.ones(partitions), np.full(len(of), -np.inf)),
            np.append(np.ones(partitions), room),
        ),
        bounds=Bounds(0, np.array(fits, np.float64)),
        integrality=np.full(len(columns), 0 if divisible else 1),
    )
    assert found.x is not None, found.message
    return float(found.fun)


def lowest(
    of: Brokers,
    whole: Block,
    most: int | None,
    *,
    divisible: bool = False,
    limits: Mapping[int, float] | None = None,
) -> float:
    """The lowest relative load of the busiest broker when at most ``most`` partitions leave their home.

    Of those that are not settled; the others keep to their ceilings, or to the relative loads in ``limits``. Infinite
    where they cannot.
    """
    columns = [(p, int(b)) for p, row in enumerate(whole.eligible) for b in row if b < whole.brokers]
    partitions, count = len(whole), len(columns)
    unit = max(1.0, float(whole.loads.sum() + of.fixed.sum()) / whole.brokers)
    rows = lil_array((partitions + whole.brokers + 1, count + 1))
    low, high = np.full(rows.shape[0], -np.inf), np.full(rows.shape[0], np.inf)
    low[:partitions] = high[:partitions] = 1
    for at, (p, b) in enumerate(columns):
        rows[p, at] = 1
        rows[partitions + b, at] = whole.loads[p] / unit
        rows[partitions + whole.brokers, at] = b != whole.home[p]
    for broker in np.flatnonzero(of.open):
        b = int(broker)
        settled = of.ceiling[b] >= 0
        rows[partitions + b, count] = 0 if settled else -of.capacity[b] / 100
        ceiling = of.ceiling[b] * (1 + 1e-5) if limits is None else limits[b] * of.capacity[b] if settled else 0
        high[partitions + b] = ((ceiling if settled else 0) - of.fixed[b]) / unit
    if most is not None:
        high[-1] = most
    found = milp(
        np.append(np.zeros(count), 1),
        constraints=LinearConstraint(rows.tocsr(), low, high),
        bounds=Bounds(0, np.append(np.ones(count), np.inf)),
        integrality=np.append(np.zeros(count) if divisible else np.ones(count), 0),
        options={"mip_rel_gap": 1e-3},
    )
    if found.status == INFEASIBLE:
        return math.inf
    assert found.x is not None, found.message
    return float(found.x[-1]) * unit / 100
