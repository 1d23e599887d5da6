"""Clusters to plan for: three racks, heavy-tailed loads, and a fifth of the brokers new and nearly empty.

Loads are Pareto with a lognormal factor on top: a few partitions carry most of the bytes, as topics do. Each partition
has a replica in every rack; new brokers hold 15 % of what an old one holds, as after an expansion. An **even** cluster
has equal brokers, and no partition that carries more than a fifth of a broker's mean. An **uneven** one has brokers of
half, full and double capacity, and hot partitions of up to two broker means, which bound the result by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.problem import BrokerInput, ProblemHeader
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import LISTS, REQUESTS, of_hours, write_account
from bellwether_load.store.plans.problem_files import write_columns

RACKS = ("a", "b", "c")
NEW_SHARE, FILL = 0.2, 0.15
TAIL = 1.3
HEAVIEST = {"even": 0.2, "uneven": 2.0}
"""The largest share of a broker's mean that a partition may carry."""
CAPACITIES = {"even": (100,), "uneven": (50, 100, 200)}
PARTITIONS_PER_TOPIC = 100
CONSUMERS = 0.5
"""Bytes out to consumers for each byte in."""
WEEK = 168
PEAK_SHARE = 0.8
"""How much of its mean a topic's rate rises and falls over a day; the hour of its peak is one of three regions'."""


@dataclass(frozen=True)
class Case:
    """How many partitions on how many brokers, of which kind, with how many moves at most, by how many hours, and what
    a request counts as, in bytes."""

    partitions: int
    brokers: int
    kind: str = "even"
    max_moves: int | None = None
    hours: int = 0
    request_bytes: int = 0

    @property
    def name(self) -> str:
        """For files."""
        requests = "-requests" * bool(self.request_bytes)
        return f"{self.kind}-{self.partitions}-{self.max_moves or 'any'}-{self.hours}{requests}"


@dataclass(frozen=True)
class Instance:
    """Replicas as indices of brokers (partitions, 3), the first leads; ``rates``: bytes/s in; ``requests``: hundredths
    of a request/s, which have nothing to do with the bytes; capacities by broker."""

    case: Case
    replicas: NDArray[np.int32]
    rates: NDArray[np.int64]
    capacity: NDArray[np.int64]
    requests: NDArray[np.int64]


def instance(case: Case, seed: int) -> Instance:
    """The cluster of this case that the seed makes."""
    dice = np.random.default_rng((seed, case.partitions))
    columns = []
    for rack in range(len(RACKS)):
        members = np.arange(rack, case.brokers, len(RACKS), dtype=np.int32)
        new = int(len(members) * NEW_SHARE)
        share = np.where(np.arange(len(members)) >= len(members) - new, FILL, 1.0)
        columns.append(dice.choice(members, case.partitions, p=share / share.sum()))
    replicas = np.stack(columns, axis=1)
    replicas = np.take_along_axis(replicas, dice.random(replicas.shape).argsort(axis=1), axis=1)
    rates = (dice.pareto(TAIL, case.partitions) + 1) * 1000 * np.exp(dice.normal(0, 1, case.partitions))
    rates = np.minimum(rates, rates.sum() / case.brokers * HEAVIEST[case.kind])
    capacity = dice.choice(np.array(CAPACITIES[case.kind]), case.brokers).astype(np.int64)
    requests = np.exp(dice.normal(6, 1, case.partitions))
    return Instance(case, replicas, rates.astype(np.int64), capacity, requests.astype(np.int64))


def write(store: Store, found: Instance) -> None:
    """The instance as ``problems/<name>`` and ``loads/<name>`` of a store, in the planner's order."""
    case, count = found.case, found.case.partitions
    brokers = [
        BrokerInput(b, RACKS[b % len(RACKS)], capacity, request_capacity=capacity)
        for b, capacity in enumerate(found.capacity.tolist())
    ]
    terms = ProblemHeader(
        cluster_id="bench",
        policy="bench/plans",
        made_at=datetime(2026, 11, 1, tzinfo=UTC),
        brokers=tuple(brokers),
        objective=Objective(max_moves=case.max_moves, request_bytes=case.request_bytes),
    )
    number = np.arange(count)
    topics = -(-count // PARTITIONS_PER_TOPIC)
    at = pa.array((number // PARTITIONS_PER_TOPIC).astype(np.int32))
    keys = {
        "topic": pa.DictionaryArray.from_arrays(at, [f"topic-{n:06d}" for n in range(topics)]).dictionary_decode(),
        "topic_id": pa.DictionaryArray.from_arrays(at, [f"{n:022d}" for n in range(topics)]).dictionary_decode(),
        "partition": pa.array((number % PARTITIONS_PER_TOPIC).astype(np.int32)),
    }
    width = found.replicas.shape[1]
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(0, width * count + 1, width, dtype=np.int32)), pa.array(found.replicas.ravel())
    )
    leader, held = pa.array(found.replicas[:, 0]), pa.array([""] * count, pa.string())
    columns = {**keys, "replicas": lists, "isr": lists, "leader": leader, "held": held}
    write_columns(store, case.name, terms, pa.table(columns))
    rates = {"produce": found.rates.astype(np.float64), "consume": found.rates * CONSUMERS}
    loads = {f"{kind}_{figure}": pa.array(rates[kind]) for kind in rates for figure in ("median", "p95", "peak")}
    evidence = {"samples": pa.array([1440] * count, pa.int32()), "covered_seconds": pa.array([86_400] * count)}
    table = pa.table({**keys, **loads, **evidence})
    if case.hours:
        for field, rate in zip(LISTS, (*rates.values(), found.requests.astype(np.float64)), strict=True):
            counted = field != REQUESTS or case.request_bytes
            lists = _hours(by_hour(rate, case.hours)).cast(field.type) if counted else pa.nulls(count, field.type)
            table = table.append_column(field, lists)
        table = table.replace_schema_metadata(of_hours(range(case.hours)))
    store.write_table(f"loads/{case.name}/part-0.parquet", table, row_group_size=100_000)  # as the loads job does
    write_account(store, f"loads/{case.name}", {"hours": case.hours})


def by_hour(rates: NDArray[Any], hours: int) -> NDArray[np.int64]:
    """Each topic is busy around the same hour of every day, a third of them in each region; small clusters have a dozen
    topics."""
    region = np.arange(len(rates)) // min(PARTITIONS_PER_TOPIC, -(-len(rates) // 12)) % 3
    hour = np.arange(hours)[None, :] + 8 * region[:, None]
    found = rates[:, None] * (1 + PEAK_SHARE * np.cos(2 * np.pi * hour / 24))
    return found.astype(np.int64)


def _hours(rates: NDArray[np.int64]) -> pa.Array:
    ends = np.arange(0, rates.size + 1, rates.shape[1], dtype=np.int64)
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(rates.ravel()))


def leading_costs(found: Instance) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each partition's leadership costs more than following, and each broker's base, in hundredths of a byte/s.

    By the rules of the files' documentation with weights of 100 %, written once more for the rivals.
    """
    produce, consume = found.rates, np.rint(found.rates * CONSUMERS).astype(np.int64)
    width = found.replicas.shape[1]
    follow = 100 * produce
    lead = 100 * (produce + produce * (width - 1) + consume)
    base = np.bincount(found.replicas.ravel(), np.repeat(follow, width), minlength=found.case.brokers)
    return lead - follow, base.astype(np.int64)
