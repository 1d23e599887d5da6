"""Small problems by hour of the week: any proof's bound, and the lowest busiest broker-hour, written from the docs.

In: a problem, rates by hour, weights of the test's choice. Out: exact fractions, computed without planner and verifier,
and what the verifier says of a plan that claims them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.problem import NO_BROKER, Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.hour_sums import HourBlock
from bellwether_load.verify.plan_verifier import Report, verify
from testkit.loads.small_planner import (
    Hourly,
    allowed,
    by_requests,
    carried,
    changed,
    load_table,
    move_table,
    partition_table,
    top,
    weigh,
)

_LATER = 1000


def proof(
    posed: Problem,
    hourly: Hourly,
    weights: Mapping[int, Mapping[int, int]],
    move_weight: int = 0,
    partition: int | None = None,
    request_weights: Mapping[int, Mapping[int, int]] | None = None,
) -> HourlyProof:
    """What may be claimed with these weights by hour and broker, and that row of the problem."""
    by_hour = {hour: weigh(posed, hourly.at(place)) for place, hour in enumerate(hourly.hours)}
    first = by_hour[hourly.hours[0]]
    # Requests are further hours, after those of the week, with capacities of their own.
    of_requests, unit = by_requests(posed), posed.header.objective.request_bytes
    later = _LATER if unit else 0
    if later:
        by_hour |= {
            later + hour: weigh(of_requests, hourly.requests_at(place), unit) for place, hour in enumerate(hourly.hours)
        }
    every = dict(weights) | {later + hour: of for hour, of in (request_weights or {}).items()}
    sizes = {
        (hour, b.id): b.capacity if hour < _LATER else b.request_capacity
        for hour in by_hour
        for b in posed.header.brokers
        if b.open
    }
    following = {hour: carried(posed, of, [NO_BROKER] * len(of)) for hour, of in by_hour.items()}
    fixed = {hour: dict(of) for hour, of in following.items()}
    for at, one in enumerate(first):
        if one.eligible == (one.slot.leader,):
            for hour, of in by_hour.items():
                fixed[hour][one.slot.leader] += of[at].load
    weight = {(hour, b): w for hour, of in every.items() for b, w in of.items()}
    total = sum(w * following[hour][b] for (hour, b), w in weight.items())
    for at, one in enumerate(first):
        if one.counts:
            total += min(
                sum(weight.get((hour, b), 0) * of[at].load for hour, of in by_hour.items())
                + move_weight * (b != one.slot.leader)
                for b in one.eligible
            )
    total -= move_weight * (allowed(posed, first) or 0)
    found = [Fraction(fixed[hour][b], size) for (hour, b), size in sizes.items()]
    if capacity := sum(w * sizes[at] for at, w in weight.items()):
        found.append(Fraction(total, capacity))
    if partition is not None:
        found.append(
            min(
                max(Fraction(fixed[hour][b] + of[partition].load, sizes[hour, b]) for hour, of in by_hour.items())
                for b in first[partition].eligible
            )
        )
    bound = float(max(Fraction(0), *found))
    return HourlyProof(weights, move_weight, partition, bound, request_weights=request_weights or {})


def lowest(posed: Problem, hourly: Hourly) -> Fraction:
    """The lowest busiest broker-hour that any plan can have, by trying them all."""
    by_hour = [(posed, weigh(posed, hourly.at(place))) for place in range(len(hourly.hours))]
    first, of, unit = by_hour[0][1], by_requests(posed), posed.header.objective.request_bytes
    if unit:
        by_hour += [
            (of, weigh(of, hourly.requests_at(place), posed.header.objective.request_bytes))
            for place in range(len(hourly.hours))
        ]
    most = allowed(posed, first)
    return min(
        max(top(asked, weighed, leaders) for asked, weighed in by_hour)
        for leaders in itertools.product(*(one.eligible or (NO_BROKER,) for one in first))
        if most is None or changed(first, leaders) <= most
    )


def blocks(asked: Problem, hourly: Hourly) -> list[HourBlock]:
    """The loads by hour as the verifier reads them."""
    keys = [PartitionKey(row["topic_id"], row["partition"]) for row in load_table(asked, hourly.at(0)).to_pylist()]
    none, rates = [0] * len(hourly.hours), [hourly.rates[key] for key in keys]
    produce, consume = ([none if of[at] is None else of[at] for of in rates] for at in (0, 1))
    requests = [hourly.requests.get(key, none) for key in keys]
    matrices = [np.array(of, np.int64).reshape(len(keys), len(none)) for of in (produce, consume, requests)]
    counted = asked.header.objective.request_bytes > 0
    known = np.array([key in hourly.requests for key in keys], np.bool_)
    return [(matrices[0], matrices[1], matrices[2] if counted else None, known if counted else None)]


def checked(
    asked: Problem,
    hourly: Hourly,
    plan: RebalancePlan,
    moves: tuple[RebalanceMove, ...],
    account: Mapping[str, Any] | None = None,
) -> Report:
    """What the verifier finds. The loads of the first hour count as the statistic."""
    tables = partition_table(asked.partitions), load_table(asked, hourly.at(0)), plan, move_table(moves)
    by_hour = blocks(asked, hourly)
    return verify(
        asked.header, header_line(asked.header), *tables, hours=hourly.hours, by_hour=by_hour, account=account
    )
