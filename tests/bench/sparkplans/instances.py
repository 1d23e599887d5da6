"""Clusters to plan for: three racks, heavy-tailed loads, and a fifth of the brokers new and nearly empty.

Loads are Pareto with a lognormal factor on top: a few partitions carry most of the bytes, as topics do. Each partition
has a replica in every rack; new brokers hold 15 % of what an old one holds, as after an expansion.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.plans.problem_files import write_columns
from bellwether.core.rebalance.problem import BrokerInput, ProblemHeader

RACKS = ("a", "b", "c")
NEW_SHARE, FILL = 0.2, 0.15
TAIL = 1.3
HEAVIEST = 0.2
"""No partition carries more than this share of a broker's mean: one that does makes every plan alike."""
PARTITIONS_PER_TOPIC = 100
CONSUMERS = 0.5
"""Bytes out to consumers for each byte in."""


@dataclass(frozen=True)
class Size:
    """How many partitions on how many brokers."""

    partitions: int
    brokers: int


@dataclass(frozen=True)
class Instance:
    """Replicas as indices of brokers (partitions, 3), the first leads; ``rates``: bytes/s in."""

    size: Size
    replicas: NDArray[np.int32]
    rates: NDArray[np.int64]


def instance(size: Size, seed: int) -> Instance:
    """The cluster of this size that the seed makes."""
    dice = np.random.default_rng((seed, size.partitions))
    columns = []
    for rack in range(len(RACKS)):
        members = np.arange(rack, size.brokers, len(RACKS), dtype=np.int32)
        new = int(len(members) * NEW_SHARE)
        share = np.where(np.arange(len(members)) >= len(members) - new, FILL, 1.0)
        columns.append(dice.choice(members, size.partitions, p=share / share.sum()))
    replicas = np.stack(columns, axis=1)
    replicas = np.take_along_axis(replicas, dice.random(replicas.shape).argsort(axis=1), axis=1)
    rates = (dice.pareto(TAIL, size.partitions) + 1) * 1000 * np.exp(dice.normal(0, 1, size.partitions))
    rates = np.minimum(rates, rates.sum() / size.brokers * HEAVIEST)
    return Instance(size, replicas, rates.astype(np.int64))


def write(store: Store, name: str, found: Instance) -> ProblemHeader:
    """The instance as a problem and as loads in a store, in the planner's order."""
    count = found.size.partitions
    terms = ProblemHeader(
        cluster_id="bench",
        policy="bench/plans",
        made_at=datetime(2026, 11, 1, tzinfo=UTC),
        brokers=tuple(BrokerInput(b, RACKS[b % len(RACKS)]) for b in range(found.size.brokers)),
    )
    number = np.arange(count)
    topic = [f"topic-{n:06d}" for n in range(-(-count // PARTITIONS_PER_TOPIC))]
    topic_id = [f"{n:022d}" for n in range(len(topic))]
    at = pa.array((number // PARTITIONS_PER_TOPIC).astype(np.int32))
    keys = {
        "topic": pa.DictionaryArray.from_arrays(at, topic).dictionary_decode(),
        "topic_id": pa.DictionaryArray.from_arrays(at, topic_id).dictionary_decode(),
        "partition": pa.array((number % PARTITIONS_PER_TOPIC).astype(np.int32)),
    }
    width = found.replicas.shape[1]
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(0, width * count + 1, width, dtype=np.int32)), pa.array(found.replicas.ravel())
    )
    partitions = pa.table(
        {
            **keys,
            "replicas": lists,
            "isr": lists,
            "leader": pa.array(found.replicas[:, 0]),
            "held": pa.array([""] * count, pa.string()),
        }
    )
    write_columns(store, name, terms, partitions)
    rates = {"produce": found.rates.astype(np.float64), "consume": found.rates * CONSUMERS}
    loads = {f"{kind}_{figure}": pa.array(rates[kind]) for kind in rates for figure in ("median", "p95", "peak")}
    evidence = {"samples": pa.array([1440] * count, pa.int32()), "covered_seconds": pa.array([86_400] * count)}
    messages = {"messages_median": pa.array(found.rates / 1000)}
    store.write_table(f"loads/{name}/part-0.parquet", pa.table({**keys, **loads, **messages, **evidence}))
    return terms


def leading_costs(found: Instance) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each partition's leadership costs more than following, and each broker's base, in hundredths of a byte/s.

    By the rules of the files' documentation with weights of 100 %, written once more for the baselines.
    """
    produce, consume = found.rates, np.rint(found.rates * CONSUMERS).astype(np.int64)
    width = found.replicas.shape[1]
    follow = 100 * produce
    lead = 100 * (produce + produce * (width - 1) + consume)
    base = np.bincount(found.replicas.ravel(), np.repeat(follow, width), minlength=found.size.brokers)
    return lead - follow, base.astype(np.int64)
