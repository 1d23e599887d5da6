"""Compute a plan in this process: a problem and loads of a store in, the plan and its moves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from bellwether.core.settings.objective import Objective
from bellwether.ports.errors import Terminal
from bellwether_load.balancing.balance import TOLERANCE
from bellwether_load.balancing.blocks import Block, Bools, Brokers, Int32s, Tell
from bellwether_load.balancing.hourly import CLOSE, HourlyResult, by_hours
from bellwether_load.balancing.hourly_loads import HourlyLoads, Part, forecast, loads_by_hour
from bellwether_load.balancing.levels import Level, Levels, levelled
from bellwether_load.balancing.moves import moves
from bellwether_load.losses.loss_input import loss_input
from bellwether_load.losses.order_descent import HourLimits
from bellwether_load.losses.plan_orders import planned_orders
from bellwether_load.plan import certificate, rebalance_plan
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.digests import plan_digest, problem_digest
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.forecast import Forecast
from bellwether_load.plan.partition_rows import Rows
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files
from bellwether_load.store.plans.load_hours import (
    REQUESTS,
    hour_blocks,
    known_hours,
    load_files,
    read_account,
    with_loads,
)
from bellwether_load.store.plans.problem_files import FOLDER, read_partitions, read_terms
from bellwether_load.store.store_errors import StoreDamaged


@dataclass(frozen=True)
class ComputedPlan:
    """A plan and its moves."""

    plan: rebalance_plan.RebalancePlan
    moves: pa.Table


def compute_plan(uri: str, problem: str, loads: str, tell: Tell = lambda _: None) -> ComputedPlan:
    """Compute the plan for a problem and loads of a store, by name. Raises StoreError, and Terminal where
    no broker may lead.

    Where the loads are known by hour of the week, the plan is made by these in the end.
    """
    store = Store.open(uri)
    terms = read_terms(store, problem)
    folder = store.below(f"{plan_files.LOADS}/{loads}")
    rows = with_loads(folder, read_partitions(store.below(f"{FOLDER}/{problem}")), terms)
    digest, known = problem_digest(header_line(terms), rows.table.table, rows.rates), int(rows.rates.known.sum())
    tell(f"{len(rows):,} partitions, {len(rows) - known:,} without measured load")
    hourly = _read_hours(folder, rows, terms.objective)
    counted = hourly is not None and hourly.resources > 1
    brokers, start = _brokers(rows, requests=counted), Block.of(rows)
    unmeasured = 0
    if terms.objective.request_bytes:
        unmeasured = _without_requests(folder, rows) if counted else known
    by_hour = None if hourly is None or not len(start) else partial(by_hours, hourly)
    found = levelled(start, brokers, terms.objective.max_moves, by_hour, tell)
    leaders = rows.leader.copy()
    leaders[found.block.ids] = found.block.leader
    limit = None if hourly and not found.hourly else Fraction(found.levels[0].floor) * (1 + TOLERANCE)
    limits = None
    if hourly is not None and found.hourly is not None:
        limits = partial(_hour_limits, hourly, leaders, found.hourly, brokers)
    most = terms.objective.max_moves
    most = None if most is None else max(most, start.changed)
    orders = planned_orders(
        loss_input(rows),
        leaders,
        brokers.ids.tolist(),
        [b.rack for b in rows.listed],
        limit,
        most,
        limits,
        found.levels[0].bound.prices.weights,
    )
    if (orders.leader != leaders).any():
        leaders = orders.leader
        found = found.led_by(leaders[found.block.ids], brokers, most)
    seen = None
    if hourly is not None:
        before, after = hourly.by_broker(len(brokers), rows.leader, leaders)
        seen = forecast(brokers, hourly.hours, before, after, terms.objective.request_bytes)
        tell(f"busiest hour of {len(hourly.hours)}: {seen.after.moment}, on broker {seen.after.broker}")
    moving = moves(rows, leaders, orders.second)
    changed = leaders != rows.leader
    tell(f"{changed.sum():,} leaders change")
    evidence = Evidence.of(read_account(folder), len(rows), len(rows) - known)
    made = _plan(terms, rows, brokers, found, digest, changed, moving, evidence, seen)
    return ComputedPlan(replace(made, losses=orders.losses, without_requests=unmeasured), moving)


def write_plan(uri: str, computed: ComputedPlan) -> str:
    """Write a plan under its digest; its path in the store. Raises StoreError."""
    return plan_files.write_plan(Store.open(uri), computed.plan, computed.moves)


def _read_hours(loads: Store, rows: Rows, costs: Objective) -> HourlyLoads | None:
    """The loads by hour of the week; None where they have no hours. Raises StoreError, and so do the passes."""
    counted = costs.request_bytes > 0
    hours = known_hours(loads, files := load_files(loads))

    def parts() -> Iterator[Part]:
        start = 0
        for produce, consume, requests, _ in hour_blocks(loads, files, len(hours), requests=counted):
            places = rows.rates.place[start : start + len(produce)]
            start, known = start + len(places), places >= 0
            at, rates = places[known], [rate[known] for rate in (produce, consume, requests) if rate is not None]
            for of, power in zip(rates, (45, 45, 30), strict=False):
                if (wrong := ((of < 0) | (of > 2**power)).any(axis=1)).any():
                    said = f"its rates by hour must be {of.shape[1]} numbers from 0 to 2**{power}"
                    raise StoreDamaged(f"{loads}: {rows.table.name(int(at[wrong.argmax()]))}: {said}")
            yield loads_by_hour(rows.replicas, rows.brokers, costs, at, *rates)

    return HourlyLoads(hours, rows.leader, parts, 1 + counted) if hours else None


def _without_requests(loads: Store, rows: Rows) -> int:
    """How many of the partitions with loads have no measured requests. Raises StoreError."""
    schema = pa.schema([REQUESTS])
    found = [batch.column(0).is_null() for path in load_files(loads) for batch in batches(loads, path, schema)]
    return int((pa.concat_arrays(found).to_numpy(zero_copy_only=False) & (rows.rates.place >= 0)).sum())


def _brokers(rows: Rows, *, requests: bool) -> Brokers:
    if not rows.open.any() and len(rows):
        why = "; ".join(f"{b.id}: {b.why}" for b in rows.listed[:3])
        raise Terminal(f"brokers: none of the {rows.brokers} may lead ({why}): plan when one is healthy")
    by_requests = np.array([b.request_capacity for b in rows.listed], np.int64) if requests else None
    return Brokers.of(rows.ids, rows.open[:-1], rows.size, rows.base, rows.base + rows.led(~rows.free), by_requests)


def _hour_limits(hourly: HourlyLoads, leaders: Int32s, found: HourlyResult, brokers: Brokers) -> HourLimits:
    """Leaders that are changed for losses keep to the busiest broker-hour of the plan for hours, or near its bound."""
    place = np.full(len(hourly.leaders), -1, np.int64)
    place[found.block.ids] = np.arange(len(found.block))
    (carried,) = hourly.by_broker(len(brokers), leaders)
    top = max(float(brokers.busiest_column(carried)[0]), float(found.bound.value) * (1 + CLOSE))
    after = carried.astype(np.float64)
    most = np.full_like(after, top) * brokers.by_column(hourly.columns)
    return HourLimits(hourly.held(found.block).loads, place, after, most)


def _plan(
    terms: ProblemHeader,
    rows: Rows,
    brokers: Brokers,
    found: Levels,
    digest: str,
    changed: Bools,
    moving: pa.Table,
    evidence: Evidence,
    seen: Forecast | None,
) -> rebalance_plan.RebalancePlan:
    before, after = rows.base + rows.led(), brokers.fixed + found.block.led
    top = brokers.busiest(after)
    over = [before[b] - top * int(brokers.capacity[b]) for b in np.flatnonzero(brokers.open)]
    least = -(-sum((o for o in over if o > 0), Fraction(0)) // 1)
    position = {int(b): at for at, b in enumerate(brokers.ids)}
    return rebalance_plan.RebalancePlan(
        cluster_id=terms.cluster_id,
        policy=terms.policy,
        made_at=terms.made_at,
        problem_digest=digest,
        digest=plan_digest(digest, moving),
        objective=terms.objective,
        certificate=_certificate(brokers, found),
        moved=rebalance_plan.MoveTotals(
            partitions=int(changed.sum()),
            reordered=len(moving) - int(changed.sum()),
            load=int(rows.load[changed].sum()),
            lower_bound=int(least),
        ),
        partitions=len(rows),
        without_load=int((~rows.rates.known).sum()),
        without_consumption=int((rows.rates.known & ~rows.rates.consumed).sum()),
        held=int(rows.held.sum()),
        brokers=tuple(
            rebalance_plan.BrokerLoad(
                b.id,
                b.rack,
                b.capacity,
                b.open,
                float(Fraction(int(before[position[b.id]]), b.capacity)),
                float(Fraction(int(after[position[b.id]]), b.capacity)),
            )
            for b in terms.brokers
        ),
        evidence=evidence,
        forecast=seen,
    )


def _certificate(brokers: Brokers, found: Levels) -> certificate.Certificate:
    first, *others = found.levels
    levels, settled = [], first.brokers.settled
    for level in others:
        if not level.bound.prices.weights[level.brokers.free].any():  # nothing is proved of brokers that carry nothing
            break
        more = tuple(int(b) for b in brokers.ids[level.brokers.settled & ~settled])
        settled = level.brokers.settled
        levels.append(certificate.CertificateLevel(more, level.limit, *_proof(level), level.floor))
    hourly = None if found.hourly is None else _hourly(brokers, found.hourly)
    return certificate.Certificate(*_proof(first), first.floor, tuple(levels), hourly)


def _hourly(brokers: Brokers, found: HourlyResult) -> HourlyProof:
    bound, prices, count = found.bound, found.bound.prices, len(found.hours)
    by_resource: tuple[dict[int, dict[int, int]], ...] = ({}, {})
    for b, column in np.argwhere(prices.weights > 0).tolist():
        of = by_resource[column // count].setdefault(found.hours[column % count], {})
        of[int(brokers.ids[b])] = int(prices.weights[b, column])
    return HourlyProof(by_resource[0], prices.move, bound.item, float(bound.value), by_resource[1])


def _proof(level: Level) -> tuple[dict[int, int], int]:
    """The weights of brokers and of a changed leader."""
    brokers, prices = level.brokers, level.bound.prices
    weights = {int(brokers.ids[b]): int(prices.weights[b]) for b in np.flatnonzero(brokers.open)}
    return weights, prices.move
