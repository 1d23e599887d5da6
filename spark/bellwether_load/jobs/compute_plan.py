"""Compute a plan in this process: a problem and loads of a store in, the plan and its moves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from bellwether_load.jobs.problem_reader import read_hours, read_partitions
from bellwether_load.plan import certificate, rebalance_plan
from bellwether_load.plan.certificate import HourlyProof, StatisticPlan
from bellwether_load.plan.documents import problem_digest_of_chunks
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.line_digest import chunk_digests
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.planning.blocks import Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.choices import Costs, Slots
from bellwether_load.planning.forecasts import forecast
from bellwether_load.planning.hourly_rounds import HourlyResult, by_hours
from bellwether_load.planning.levels import Level, Levels, levelled
from bellwether_load.planning.pools import Pool
from bellwether_load.planning.prices import Prices
from bellwether_load.planning.surveys import Survey, share_out
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files
from bellwether_load.store.plans.load_hours import read_account
from bellwether_load.store.plans.problem_files import read_terms
from bellwether_load.transforms.hourly_passes import HourlyPasses
from bellwether_load.transforms.moves import Moves, moves


@dataclass(frozen=True)
class ComputedPlan:
    """A plan, its moves, and how many rounds it took."""

    plan: rebalance_plan.RebalancePlan
    moves: Moves
    rounds: int


def compute_plan(uri: str, problem: str, loads: str, tell: Callable[[str], None] = lambda _: None) -> ComputedPlan:
    """Compute the plan for a problem and loads of a store, by name. Raises StoreError, and Refused for invalid inputs.

    Where the loads are known by hour of the week, the plan is made by these in the end.
    """
    store = Store.open(uri)
    terms = read_terms(store, problem)
    slots, costs = slots_of(terms), costs_of(terms)
    partitions = read_partitions(store, problem, loads, str(terms.objective.statistic).lower(), slots, costs)
    survey = partitions.survey()
    digest = problem_digest_of_chunks(terms, chunk_digests(partitions.lines()))
    tell(f"{survey.partitions:,} partitions, {survey.without_load:,} without measured load")
    brokers = _brokers(terms, slots, survey)
    pool = Pool(partitions.blocks(share_out(survey.leaders)))
    hours = read_hours(store, loads)
    passes = HourlyPasses(partitions, hours, brokers) if hours is not None and brokers.open.any() else None
    by_hour = None if passes is None or not survey.leaders.any() else partial(by_hours, passes)
    found = levelled(pool, brokers, terms.objective.max_moves, by_hour, tell=tell)
    seen = None
    if passes is not None:
        known = found.hourly
        loads_then = passes.by_broker(*pool.changes()) if known is None else (known.before, known.after)
        seen = forecast(brokers, passes.hours, *loads_then)
        tell(f"busiest hour of {len(passes.hours)}: {seen.after.moment}, on broker {seen.after.broker}")
    moving = moves(partitions, *pool.changes())
    tell(f"{moving.leaders:,} leaders change")
    evidence = Evidence.of(read_account(store.below(f"loads/{loads}")), survey.partitions, survey.without_load)
    made = _plan(terms, survey, brokers, found, digest, moving, evidence)
    return ComputedPlan(replace(made, forecast=seen), moving, found.rounds)


def write_plan(uri: str, computed: ComputedPlan) -> str:
    """Write a plan under its digest; its path in the store. Raises StoreError."""
    store, digest = Store.open(uri), computed.plan.digest
    tables = enumerate(computed.moves.tables)
    paths = [plan_files.write_moves(store, digest, piece, table) for piece, table in tables if len(table)]
    return plan_files.finish(store, computed.plan, paths)


def slots_of(terms: ProblemHeader) -> Slots:
    """The problem's brokers as partitions see them."""
    brokers = sorted(terms.brokers, key=lambda b: b.id)
    return Slots.of(
        [b.id for b in brokers],
        [b.open for b in brokers],
        [b.rack for b in brokers],
        terms.objective.preferred_racks,
    )


def costs_of(terms: ProblemHeader) -> Costs:
    """The problem's weights."""
    asked = terms.objective
    return Costs(asked.produce_weight, asked.replication_weight, asked.consume_weight, asked.follow_weight)


def _brokers(terms: ProblemHeader, slots: Slots, survey: Survey) -> Brokers:
    capacity = np.array([b.capacity for b in sorted(terms.brokers, key=lambda b: b.id)], np.int64)
    return Brokers.of(slots.ids, slots.open, capacity, survey.base, survey.base + survey.fixed)


def _plan(
    terms: ProblemHeader,
    survey: Survey,
    brokers: Brokers,
    found: Levels,
    digest: str,
    moving: Moves,
    evidence: Evidence,
) -> rebalance_plan.RebalancePlan:
    before, after = survey.base + survey.led, found.carried
    top = brokers.busiest(after)
    over = [before[b] - top * int(brokers.capacity[b]) for b in np.flatnonzero(brokers.open)]
    least = -(-sum((o for o in over if o > 0), Fraction(0)) // 1)
    position = {int(b): at for at, b in enumerate(brokers.ids)}
    return rebalance_plan.RebalancePlan(
        cluster_id=terms.cluster_id,
        policy=terms.policy,
        made_at=terms.made_at,
        problem_digest=digest,
        digest=rebalance_plan.plan_digest_of_chunks(digest, chunk_digests(moving.lines())),
        objective=terms.objective,
        before=_balance(brokers, before),
        after=_balance(brokers, after),
        certificate=_certificate(brokers, survey, found, top),
        moved=rebalance_plan.MoveTotals(
            partitions=moving.leaders,
            reordered=moving.reordered,
            load=moving.load,
            lower_bound=int(least),
        ),
        partitions=survey.partitions,
        without_load=survey.without_load,
        without_consumption=survey.without_consumption,
        held=survey.held,
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
        forecast=None,
    )


def _balance(brokers: Brokers, carried: Int64s) -> rebalance_plan.LoadBalance:
    top = brokers.busiest(carried)
    capacity = int(brokers.capacity[brokers.open].sum())
    mean = Fraction(int(carried[brokers.open].sum()), capacity) if capacity else Fraction(0)
    return rebalance_plan.LoadBalance(float(top), float(mean), float(top / mean - 1) if mean else 0.0)


def _certificate(brokers: Brokers, survey: Survey, found: Levels, top: Fraction) -> certificate.Certificate:
    first, *others = found.levels
    floor = Fraction(first.floor)
    gap = float(top / floor - 1) if floor else None if top else 0.0
    item = max((Fraction(int(w), int(c)) for w, c in zip(survey.widest, brokers.capacity, strict=True)), default=0)
    levels, settled = [], first.brokers.settled
    for level in others:
        more = tuple(int(b) for b in brokers.ids[level.brokers.settled & ~settled])
        settled = level.brokers.settled
        proof = (*_proof(level), level.load, level.floor)
        levels.append(certificate.CertificateLevel(more, level.limit, *proof))
    caps = tuple(
        certificate.OtherCap(
            other.most,
            _weights(brokers, other.prices),
            other.prices.move,
            other.bound,
            float(other.load),
            other.changed,
        )
        for other in found.alternatives
    )
    hourly = None if found.hourly is None else _hourly(brokers, found.hourly)
    return certificate.Certificate(*_proof(first), first.floor, gap, float(item), tuple(levels), caps, hourly)


def _hourly(brokers: Brokers, found: HourlyResult) -> HourlyProof:
    bound, prices, weights = found.bound, found.bound.prices, dict[int, dict[int, int]]()
    for b, h in np.argwhere(prices.weights > 0).tolist():
        weights.setdefault(found.hours[h], {})[int(brokers.ids[b])] = int(prices.weights[b, h])
    other = None if found.replaced is None else StatisticPlan(*found.replaced)
    return HourlyProof(weights, prices.move, bound.item, float(bound.value), other)


def _proof(level: Level) -> tuple[dict[int, int], int, float | None]:
    """The weights of brokers and of a changed leader, and the threshold."""
    prices = level.bound.prices
    return _weights(level.brokers, prices), prices.move, prices.pruning.threshold if prices.pruning else None


def _weights(brokers: Brokers, prices: Prices) -> dict[int, int]:
    return {int(brokers.ids[b]): int(prices.weights[b]) for b in np.flatnonzero(brokers.open)}
