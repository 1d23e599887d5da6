"""Small problems by hour of the week: any proof's bound, and the lowest busiest broker-hour, written from the docs.

In: a problem, rates by hour, weights of the test's choice. Out: exact fractions, computed without planner and verifier,
and what the verifier says of a plan that claims them.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Mapping
from fractions import Fraction

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.problem import NO_BROKER, Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.load_rows import LoadRow
from bellwether_load.verify.plan_verifier import Report, verify
from testkit.loads.small_planner import Hourly, allowed, by_requests, carried, changed, load_rows, top, weigh

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


def rows(asked: Problem, hourly: Hourly) -> Iterator[LoadRow]:
    """The loads by hour as the verifier reads them; those of the first hour count as the statistic."""
    for row in load_rows(asked, hourly.at(0)):
        ins, outs = hourly.rates[PartitionKey(row[1], row[2])]
        out = None if outs is None else memoryview(array("q", outs))
        asked_for = hourly.requests.get(PartitionKey(row[1], row[2]))
        requests = None if asked_for is None else memoryview(array("q", asked_for))
        yield (*row[:5], memoryview(array("q", ins)), out, requests)


def checked(
    asked: Problem, hourly: Hourly, plan: RebalancePlan, moves: tuple[RebalanceMove, ...], *given: LoadRow
) -> Report:
    """What the verifier finds; with other rows if given."""
    loads = given or rows(asked, hourly)
    return verify(asked.header, header_line(asked.header), asked.partitions, loads, plan, moves, hours=hourly.hours)
