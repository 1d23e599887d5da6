"""Small planning problems as arrays, and the best possible answer to them by trying all: for tests of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from bellwether_load.balancing.blocks import Block, Brokers, Int64s
from sparkplans.instances import Case, instance, leading_costs


def brokers(
    count: int,
    *,
    capacity: Sequence[int] | None = None,
    base: Sequence[int] | None = None,
    fixed: Sequence[int] | None = None,
    closed: Sequence[int] = (),
) -> Brokers:
    """Brokers 0 to count - 1 with a capacity of 100 each and nothing to carry, unless said otherwise."""
    base_ = np.array(base if base is not None else [0] * count, np.int64)
    return Brokers.of(
        ids=np.arange(count),
        open_=np.array([b not in closed for b in range(count)]),
        capacity=np.array(capacity if capacity is not None else [100] * count, np.int64),
        base=base_,
        fixed=base_ + np.array(fixed if fixed is not None else [0] * count, np.int64),
    )


def block(
    count: int,
    rows: Sequence[tuple[int, Sequence[int]] | tuple[int, Sequence[int], int | None]],
) -> Block:
    """A block of partitions, each a load, who may lead it, and who leads it: the first of these unless said."""
    width = max((len(row[1]) for row in rows), default=1)
    eligible = np.full((len(rows), width), count, np.int32)
    home = np.full(len(rows), count, np.int32)
    for at, row in enumerate(rows):
        eligible[at, : len(row[1])] = row[1]
        leader = row[2] if len(row) == 3 else row[1][0]
        home[at] = count if leader is None else leader
    loads = np.array([row[0] for row in rows], np.int64)
    return Block.at_start(count, np.arange(len(rows)), loads, eligible, home)


def expanded(seed: int = 1, partitions: int = 3000, count: int = 12) -> tuple[Brokers, Block]:
    """A cluster of three racks whose last broker of each rack is new: loads with a heavy tail."""
    dice = np.random.default_rng(seed)
    share = np.array([1.0, 1.0, 1.0, 0.15])
    rows = []
    for load in (dice.pareto(1.3, partitions) * 1000 + 1).astype(int):
        row = [rack * 4 + int(dice.choice(4, p=share / share.sum())) for rack in range(3)]
        dice.shuffle(row)
        rows.append((int(load), row))
    return brokers(count), block(count, rows)


def of_the_bench(case: Case) -> tuple[Brokers, Block]:
    """A cluster as the bench has it."""
    made, count = instance(case, 4), case.brokers
    loads, base = leading_costs(made)
    home = made.replicas[:, 0]
    whole = Block(count, np.arange(case.partitions), loads, made.replicas, home, home)
    return Brokers.of(np.arange(count), np.ones(count, np.bool_), made.capacity, base, base), whole


def carried(of: Brokers, whole: Block, leaders: Iterable[int]) -> Int64s:
    """What each broker carries when the partitions are led like this."""
    total = of.fixed.copy()
    for leader, load in zip(leaders, whole.loads, strict=True):
        total[leader] += load
    return total


def best_possible(of: Brokers, whole: Block) -> Fraction:
    """The lowest relative load that the busiest broker can have, by trying all leaders."""
    choices = [[int(b) for b in row if b < whole.brokers] for row in whole.eligible]
    return min(of.busiest(carried(of, whole, tried)) for tried in product(*choices))


def heaviest_item(of: Brokers, whole: Block) -> Fraction:
    """The largest relative load of a partition that at least two may lead."""
    found = [
        Fraction(int(load), int(of.capacity[b]))
        for load, row in zip(whole.loads, whole.eligible, strict=True)
        if (row < whole.brokers).sum() >= 2
        for b in row
        if b < whole.brokers
    ]
    return max(found, default=Fraction(0))


@st.composite
def problems(draw: st.DrawFn, most_partitions: int = 60, most_brokers: int = 8) -> tuple[Brokers, Block]:
    """Brokers of unequal size, some closed, some with load that stays; partitions of all weights, some homeless."""
    count = draw(st.integers(1, most_brokers))
    closed = draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    able = [b for b in range(count) if b not in closed]
    of = brokers(
        count,
        capacity=draw(st.lists(st.sampled_from([50, 100, 100, 300]), min_size=count, max_size=count)),
        base=draw(st.lists(st.integers(0, 2000), min_size=count, max_size=count)),
        fixed=draw(st.lists(st.integers(0, 500), min_size=count, max_size=count)),
        closed=sorted(closed),
    )
    load = st.one_of(st.integers(0, 50), st.integers(0, 5000), st.just(0), st.just(1000))
    who = st.lists(st.sampled_from(able), min_size=1, max_size=3, unique=True)
    rows = draw(st.lists(st.tuples(load, who, st.booleans()), max_size=most_partitions))
    return of, block(count, [(load, who, None if homeless else who[0]) for load, who, homeless in rows])
