"""A small planner for small problems, written straight from the documentation of the files: slow, simple, exact.

In: a problem and loads as plain values. Out: a plan whose every claim is so, greedy or with leaders and weights of the
test's choice; the best plan there is, by trying all; and the folders that the verifier reads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.certificate import Certificate, CertificateLevel, HourlyProof
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.forecast import BrokerHour, BusiestRequests, Forecast
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, PartitionInput, Problem, ProblemHeader
from bellwether_load.plan.rebalance_plan import (
    BrokerLoad,
    MoveTotals,
    RebalancePlan,
)
from bellwether_load.store.columns import table_of
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import LISTS, of_hours, write_account
from testkit.loads.digest_lines import plan_digest, problem_digest

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)

Loads = Mapping[PartitionKey, tuple[float, float | None]]
"""Bytes/s in, and out to consumers, whichever statistic is asked for."""


@dataclass(frozen=True)
class Hourly:
    """Bytes/s in and out of each partition in some hours of the week; out may be None."""

    hours: tuple[int, ...]
    rates: Mapping[PartitionKey, tuple[Sequence[int], Sequence[int] | None]]
    requests: Mapping[PartitionKey, Sequence[int]] = field(default_factory=dict)
    """Hundredths of a request/s; partitions that are not there have no measured requests."""

    def at(self, place: int) -> Loads:
        """The loads in one of these hours."""
        return {k: (ins[place], None if outs is None else outs[place]) for k, (ins, outs) in self.rates.items()}

    def requests_at(self, place: int) -> Loads:
        """The requests in one of these hours, as consumption: each weighs ``request_bytes``."""
        return {k: (0, self.requests[k][place] if k in self.requests else None) for k in self.rates}


def by_requests(posed: Problem) -> Problem:
    """The same problem with requests in the place of consumption, and nothing else."""
    asked = replace(posed.header.objective, consumption=True)
    brokers = tuple(replace(b, capacity=b.request_capacity) for b in posed.header.brokers)
    return replace(posed, header=replace(posed.header, brokers=brokers, objective=asked))


def load_table(posed: Problem, known: Loads) -> pa.Table:
    """Loads as the verifier reads them, of every hour where they are known by hour."""
    topics = {one.topic_id: one.topic for one in posed.partitions}
    keys = sorted(known, key=lambda k: (topics.get(k.topic_id, k.topic_id), k))
    return loads_of([(topics.get(k.topic_id, k.topic_id), *k, *known[k]) for k in keys])


def loads_of(rows: Sequence[tuple[str, str, int, float | None, float | None]]) -> pa.Table:
    """Rows of loads as a table."""
    types = (pa.string(), pa.string(), pa.int32(), pa.float64(), pa.float64())
    names = ("topic", "topic_id", "partition", "produce", "consume")
    return pa.table({name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(names)})


def partition_table(partitions: Sequence[PartitionInput]) -> pa.Table:
    """Partitions as the verifier reads them, whether they make sense or not."""
    return table_of(partitions, problem_files.SCHEMA)


def move_table(moves: Sequence[RebalanceMove]) -> pa.Table:
    """Moves as the verifier reads them."""
    return table_of(moves, plan_files.SCHEMA)


def account(hourly: Hourly | None = None) -> dict[str, Any]:
    """What loads of two weeks rest on, all of whose hours are measured unless some are given."""
    hours = 168 if hourly is None else len(hourly.hours)
    return {"since": "2026-11-07T12:00:00Z", "until": "2026-11-21T12:00:00Z", "hours": hours}


def slot(
    index: int = 0,
    replicas: Sequence[int] = (1, 2, 3),
    *,
    topic: str = "orders",
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    held: str = "",
) -> PartitionInput:
    """In sync everywhere and led by its first replica, unless given."""
    members = tuple(replicas if isr is None else isr)
    return PartitionInput(
        topic, f"id-of-{topic}", index, tuple(replicas), members, replicas[0] if leader is None else leader, held
    )


def problem(
    *slots: PartitionInput,
    brokers: int | Sequence[BrokerInput] = 3,
    objective: Objective | None = None,
    cluster_id: str = "memory-cluster",
) -> Problem:
    """Brokers 1..n of one strength, all open, or those given."""
    found = tuple(BrokerInput(b) for b in range(1, brokers + 1)) if isinstance(brokers, int) else tuple(brokers)
    terms = ProblemHeader(cluster_id, "kafka/main", NOON, objective or Objective(), found)
    return Problem(terms, tuple(sorted(slots)))


def led(posed: Problem, *rates: float) -> dict[PartitionKey, tuple[float, float | None]]:
    """Loads of leaders alone, as followers take nothing in: so many bytes/s out for each replica."""
    return {s.key: (0.0, rate * len(s.replicas)) for s, rate in zip(posed.partitions, rates, strict=False)}


def loads(posed: Problem, *rates: float, consume: float | None = 0.0) -> dict[PartitionKey, tuple[float, float | None]]:
    """A load row for the first partitions, in order: bytes/s in, and as many out as given."""
    return {s.key: (rate, consume) for s, rate in zip(posed.partitions, rates, strict=False)}


def move_of(slot: PartitionInput, to_leader: int, load: int) -> RebalanceMove:
    """The move that gives a partition this leader: it comes first, the others keep their order."""
    order = (to_leader, *(b for b in slot.replicas if b != to_leader))
    return RebalanceMove(slot.topic, slot.topic_id, slot.partition, slot.replicas, order, slot.leader, to_leader, load)


def is_move(slot: PartitionInput, to_leader: int) -> bool:
    """Whether that leader requires a move: it differs, or it is not first in the replica order."""
    return to_leader != NO_BROKER and (to_leader != slot.leader or to_leader != slot.replicas[0])


@dataclass(frozen=True)
class Weighed:
    """One partition as the plan sees it: who may lead it, whether it can move, and what it costs."""

    slot: PartitionInput
    eligible: tuple[int, ...]
    free: bool
    load: int
    follow: int
    rates: tuple[int, int] | None

    @property
    def counts(self) -> bool:
        """Whether any broker leads it or may."""
        return bool(self.eligible)


def weigh(posed: Problem, known: Loads, unit: int = 100) -> list[Weighed]:
    """Every partition of the problem, weighed: a byte/s is so many units of load."""
    asked, found = posed.header.objective, []
    slots = {b.id: b for b in posed.header.brokers}
    for one in posed.partitions:
        row = known.get(one.key)
        rates = None if row is None else (round(row[0]), round(row[1] or 0))
        p, c = rates or (0, 0)
        follow = unit * p
        load = unit * (p * (len(one.replicas) - 1) + (c if asked.consumption else 0))
        candidates = tuple(b for b in one.replicas if slots[b].open and b in one.isr)
        for rack in asked.preferred_racks:
            inside = tuple(b for b in candidates if slots[b].rack == rack)
            if inside:
                candidates = inside
                break
        free = rates is not None and not one.held and bool(candidates)
        stays = () if one.leader == NO_BROKER else (one.leader,)
        found.append(Weighed(one, candidates if free else stays, free, load, follow, rates))
    return found


def carried(posed: Problem, weighed: Sequence[Weighed], leaders: Sequence[int]) -> dict[int, int]:
    """What every broker carries in all, in hundredths of a byte/s, under these leaders."""
    found = dict.fromkeys((b.id for b in posed.header.brokers), 0)
    for one, leader in zip(weighed, leaders, strict=True):
        for broker in one.slot.replicas:
            found[broker] += one.follow
        if one.counts and leader != NO_BROKER:
            found[leader] += one.load
    return found


def top(posed: Problem, weighed: Sequence[Weighed], leaders: Sequence[int]) -> Fraction:
    """The largest relative load of an open broker."""
    found = carried(posed, weighed, leaders)
    return max(Fraction(found[b.id], b.capacity) for b in posed.header.brokers if b.open)


def optimum(posed: Problem, known: Loads) -> Fraction:
    """The smallest top that any plan can have, by trying them all."""
    weighed = weigh(posed, known)
    choices = [one.eligible or (NO_BROKER,) for one in weighed]
    most = allowed(posed, weighed)
    return min(
        top(posed, weighed, leaders)
        for leaders in itertools.product(*choices)
        if most is None or changed(weighed, leaders) <= most
    )


def changed(weighed: Sequence[Weighed], leaders: Sequence[int]) -> int:
    """How many partitions get another leader."""
    return sum(to != one.slot.leader for one, to in zip(weighed, leaders, strict=True) if one.free)


def allowed(posed: Problem, weighed: Sequence[Weighed]) -> int | None:
    """How many leaders may change; None for any number."""
    most = posed.header.objective.max_moves
    forced = sum(one.free and one.slot.leader not in one.eligible for one in weighed)
    return None if most is None else max(most, forced)


def greedy(posed: Problem, weighed: Sequence[Weighed]) -> list[int]:
    """Leaders, the heaviest partition first, each to the broker that carries least then."""
    slots = {b.id: b for b in posed.header.brokers}
    size = {b.id: b.capacity for b in posed.header.brokers}
    leaders = [one.slot.leader for one in weighed]
    now = carried(posed, weighed, [NO_BROKER if w.free else leader for w, leader in zip(weighed, leaders, strict=True)])
    for place in sorted((i for i, w in enumerate(weighed) if w.free), key=lambda i: -weighed[i].load):
        one = weighed[place]
        may = [b for b in one.eligible if slots[b].open]
        pick = min(may, key=lambda b: (Fraction(now[b] + one.load, size[b]), b != one.slot.leader, b))
        leaders[place] = pick
        now[pick] += one.load
    return leaders


def bound(
    posed: Problem,
    weighed: Sequence[Weighed],
    weights: Mapping[int, int],
    move_weight: int = 0,
    least: Fraction | None = Fraction(0),
) -> Fraction:
    """The dual bound of these weights, without that of single partitions; ``least`` if it is below."""
    free = {b.id: b for b in posed.header.brokers if b.open}
    following = carried(posed, weighed, [NO_BROKER] * len(weighed))
    total = sum(weights.get(b, 0) * following[b] for b in free)
    for one in weighed:
        if one.counts:
            total += min(
                one.load * (weights.get(b, 0) if b in free else 0) + move_weight * (b != one.slot.leader)
                for b in one.eligible
            )
    total -= move_weight * (allowed(posed, weighed) or 0)
    found = Fraction(total, sum(weights.get(b, 0) * slot.capacity for b, slot in free.items()))
    return found if least is None else max(found, least)


def _fixed(posed: Problem, weighed: Sequence[Weighed]) -> dict[int, int]:
    fixed = carried(posed, weighed, [NO_BROKER] * len(weighed))
    for one in weighed:
        if one.eligible == (one.slot.leader,):
            fixed[one.slot.leader] += one.load
    return fixed


def least_loads(posed: Problem, weighed: Sequence[Weighed], settled: Collection[int] = ()) -> list[Fraction]:
    """What unsettled brokers carry in any case, and at least with a partition that only they may lead."""
    sizes = {b.id: b.capacity for b in posed.header.brokers if b.open}
    fixed = _fixed(posed, weighed)
    movable = (w for w in weighed if w.free and w.eligible != (w.slot.leader,))
    return [Fraction(fixed[b], size) for b, size in sizes.items() if b not in settled] + [
        min(Fraction(fixed[b] + one.load, sizes[b]) for b in one.eligible)
        for one in movable
        if not set(one.eligible) & set(settled)
    ]


def level(
    posed: Problem,
    weighed: Sequence[Weighed],
    settled: Sequence[int],
    limit: float,
    weights: Mapping[int, int],
    move_weight: int = 0,
) -> CertificateLevel:
    """What a plan may claim of the open brokers that are not settled, with these weights."""
    rest = [b for b in posed.header.brokers if b.open and b.id not in settled]
    over = sum(weights.get(b.id, 0) * b.capacity for b in posed.header.brokers if b.open)
    numerator = bound(posed, weighed, weights, move_weight, None) * over
    size = {b.id: b.capacity for b in posed.header.brokers}
    numerator -= sum((weights.get(b, 0) * size[b] * Fraction(limit) for b in settled), Fraction(0))
    proved = numerator / sum(weights.get(b.id, 0) * b.capacity for b in rest)
    return CertificateLevel(
        tuple(settled),
        limit,
        dict(weights),
        move_weight,
        float(max([Fraction(0), proved, *least_loads(posed, weighed, settled)])),
    )


def planned(
    posed: Problem,
    known: Loads,
    leaders: Sequence[int] | None = None,
    weights: Mapping[int, int] | None = None,
    move_weight: int = 0,
    hourly: Hourly | None = None,
    proof: HourlyProof | None = None,
) -> tuple[RebalancePlan, tuple[RebalanceMove, ...]]:
    """A plan whose every claim is so: greedy, and with the best weights of a few, unless given."""
    weighed = weigh(posed, known)
    chosen = list(leaders) if leaders is not None else greedy(posed, weighed)
    free = [b for b in posed.header.brokers if b.open]
    before = [one.slot.leader for one in weighed]
    moves = tuple(
        move_of(one.slot, to, one.load)
        for one, to in zip(weighed, chosen, strict=True)
        if one.free and is_move(one.slot, to)
    )
    if weights is None:
        sets = [c for n in range(1, len(free) + 1) for c in itertools.combinations([b.id for b in free], n)]
        weights = dict.fromkeys(max(sets, key=lambda s: bound(posed, weighed, dict.fromkeys(s, 1))), 1)
    singles = least_loads(posed, weighed)
    dual = bound(posed, weighed, weights, move_weight)
    proved = max([dual, *singles])
    highest = top(posed, weighed, chosen)
    start, end = carried(posed, weighed, before), carried(posed, weighed, chosen)
    must = sum((max(Fraction(0), start[b.id] - highest * b.capacity) for b in free), Fraction(0))
    problems_digest = problem_digest(posed.header, ((w.slot, w.rates) for w in weighed))
    plan = RebalancePlan(
        cluster_id=posed.header.cluster_id,
        policy=posed.header.policy,
        made_at=posed.header.made_at,
        problem_digest=problems_digest,
        digest=plan_digest(problems_digest, moves),
        objective=posed.header.objective,
        certificate=Certificate(dict(weights), move_weight, float(proved), hourly=proof),
        moved=MoveTotals(
            partitions=sum(m.moves_leader for m in moves),
            reordered=sum(not m.moves_leader for m in moves),
            load=sum(m.load for m in moves if m.moves_leader),
            lower_bound=math.ceil(must),
        ),
        partitions=len(weighed),
        without_load=sum(w.rates is None for w in weighed),
        without_consumption=sum(known.get(w.slot.key, (0, 0))[1] is None for w in weighed),
        held=sum(bool(w.slot.held) for w in weighed),
        brokers=tuple(
            BrokerLoad(b.id, b.rack, b.capacity, b.open, start[b.id] / b.capacity, end[b.id] / b.capacity)
            for b in posed.header.brokers
        ),
        evidence=Evidence.of(account(hourly), len(weighed), sum(w.rates is None for w in weighed)),
        forecast=None if hourly is None else forecast(posed, hourly, before, chosen),
        without_requests=sum(
            w.slot.key in known and w.slot.key not in (hourly.requests if hourly else {})
            for w in weighed
            if posed.header.objective.request_bytes
        ),
    )
    return plan, moves


def forecast(posed: Problem, hourly: Hourly, before: Sequence[int], after: Sequence[int]) -> Forecast:
    """The busiest broker-hours with these leaders before and after, by bytes and by requests if these count."""

    def busiest(of: Problem, known: Callable[[int], Loads], leaders: Sequence[int], unit: int = 100) -> BrokerHour:
        loads = []
        for place, hour in enumerate(hourly.hours):
            total = carried(of, weigh(of, known(place), unit), leaders)
            loads += [(Fraction(total[b.id], b.capacity), -b.id, -hour) for b in of.header.brokers if b.open]
        load, broker, hour = max(loads)
        return BrokerHour(-broker, -hour, float(load if of is posed else load / unit))

    unit, requests = posed.header.objective.request_bytes, None
    if unit:
        first, then = (busiest(by_requests(posed), hourly.requests_at, who, unit) for who in (before, after))
        requests = BusiestRequests(first, then)
    first, then = (busiest(posed, hourly.at, who) for who in (before, after))
    return Forecast(len(hourly.hours), first, then, requests)


def again(plan: RebalancePlan, moves: Sequence[RebalanceMove]) -> RebalancePlan:
    """The plan with the digest of other moves, as a forger would write it."""
    return replace(plan, digest=plan_digest(plan.problem_digest, moves))


def write_loads(
    store: Store, name: str, known: Loads, topics: Mapping[str, str] | None = None, hourly: Hourly | None = None
) -> str:
    """A loads folder with the same rates for every statistic, and those by hour if given; its path in the store."""
    names = {k.topic_id: k.topic_id.removeprefix("id-of-") for k in known} | dict(topics or {})
    keys = sorted(known, key=lambda k: (names[k.topic_id], k))
    columns: dict[str, pa.Array] = {
        "topic": pa.array([names[k.topic_id] for k in keys], pa.string()),
        "topic_id": pa.array([k.topic_id for k in keys], pa.string()),
        "partition": pa.array([k.partition for k in keys], pa.int32()),
    }
    for place, kind in enumerate(("produce", "consume")):
        for statistic in ("median", "p95", "peak"):
            columns[f"{kind}_{statistic}"] = pa.array([known[k][place] for k in keys], pa.float64())
    columns["samples"] = pa.array([60] * len(keys), pa.int32())
    columns["covered_seconds"] = pa.array([3600] * len(keys), pa.int64())
    table = pa.table(columns)
    if hourly is not None:
        for place, column in enumerate(LISTS):
            lists = [(*hourly.rates[k], hourly.requests.get(k))[place] for k in keys]
            table = table.append_column(column, pa.array(lists, column.type))
        table = table.replace_schema_metadata(of_hours(hourly.hours))
    store.write_table(f"loads/{name}/part-0.parquet", table)
    write_account(store, f"loads/{name}", account(hourly))
    return f"loads/{name}"
