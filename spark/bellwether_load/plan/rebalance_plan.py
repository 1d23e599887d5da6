"""Rebalance plan: its moves, its quality with a proof, and the digests that bind it to its inputs.

Made by the plan job, verified by the verifier, shown in status and on the page, approved by its digest. The moves may
be millions, so they are stored apart from the plan's summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bellwether.core.settings.objective import Objective
from bellwether.core.strict_json import StrictObject, format_timestamp
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.certificate import Certificate
from bellwether_load.plan.forecast import Forecast
from bellwether_load.plan.line_digest import chunk_digests, digest_of_chunks
from bellwether_load.plan.problem import NO_BROKER, PartitionInput, Problem, ProblemHeader

FORMAT = 1
DIGEST_LETTERS = 32
"""128 bits: a second plan with the digest of an approved one cannot be found."""


@dataclass(frozen=True, slots=True)
class LoadBalance:
    """Distribution of load over the eligible brokers, in bytes/s per ``WHOLE`` units of capacity.

    ``mean`` is their total load over their total capacity; ``spread`` is max / mean - 1.
    """

    max: float
    mean: float
    spread: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"max": self.max, "mean": self.mean, "spread": self.spread}

    @classmethod
    def read(cls, fields: StrictObject) -> LoadBalance:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        made = cls(fields.number("max"), fields.number("mean"), fields.number("spread"))
        fields.finish()
        return made


@dataclass(frozen=True, slots=True)
class MoveTotals:
    """Sums over the moves: leader changes, order changes, moved load, and the minimum load that any such plan must
    move.

    ``load`` and ``lower_bound`` are in hundredths of a byte/s.
    """

    partitions: int
    reordered: int
    load: int
    lower_bound: int

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "partitions": self.partitions,
            "reordered": self.reordered,
            "load": self.load,
            "lowerBound": self.lower_bound,
        }

    @classmethod
    def read(cls, fields: StrictObject) -> MoveTotals:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        made = cls(*(fields.integer(name) for name in ("partitions", "reordered", "load", "lowerBound")))
        fields.finish()
        return made


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """A broker's load before and after, in bytes/s per ``WHOLE`` units of capacity."""

    id: int
    rack: str | None
    capacity: int
    open: bool
    before: float
    after: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "id": self.id,
            "rack": self.rack,
            "capacity": self.capacity,
            "open": self.open,
            "before": self.before,
            "after": self.after,
        }

    @classmethod
    def read(cls, fields: StrictObject) -> BrokerLoad:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        made = cls(
            fields.integer("id"),
            fields.text_or_none("rack"),
            fields.integer("capacity", 1),
            fields.boolean("open"),
            fields.number("before"),
            fields.number("after"),
        )
        fields.finish()
        return made


@dataclass(frozen=True)
class RebalancePlan:
    """Content of ``plan.json``: policy, problem, balance before and after, the certificate, sums, and the forecast.

    ``partitions``, ``without_load``, ``without_consumption`` (a load, in which consumption counts as 0) and ``held``
    count those of the problem. ``forecast`` is None where the loads have no hours.
    """

    cluster_id: str
    policy: str
    made_at: datetime
    problem_digest: str
    digest: str
    objective: Objective
    before: LoadBalance
    after: LoadBalance
    certificate: Certificate
    moved: MoveTotals
    partitions: int
    without_load: int
    without_consumption: int
    held: int
    brokers: tuple[BrokerLoad, ...]
    forecast: Forecast | None

    @property
    def unmeasured(self) -> int:
        """Number of partitions whose consumption should weigh and is not measured."""
        return self.without_consumption if self.objective.consume_weight else 0

    def document(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "format": FORMAT,
            "clusterId": self.cluster_id,
            "policy": self.policy,
            "madeAt": format_timestamp(self.made_at),
            "problemDigest": self.problem_digest,
            "digest": self.digest,
            "objective": self.objective.document(),
            "before": self.before.document(),
            "after": self.after.document(),
            "certificate": self.certificate.document(),
            "moved": self.moved.document(),
            "partitions": self.partitions,
            "withoutLoad": self.without_load,
            "withoutConsumption": self.without_consumption,
            "held": self.held,
            "brokers": [b.document() for b in self.brokers],
            "forecast": None if self.forecast is None else self.forecast.document(),
        }

    @classmethod
    def read(cls, document: object) -> RebalancePlan:
        """Read the plan from JSON. Raises InvalidDocument, which names the field."""
        fields = StrictObject(document)
        fields.constant("format", FORMAT)
        forecast = fields.nested_or_none("forecast")
        made = cls(
            fields.text("clusterId"),
            fields.text("policy"),
            fields.timestamp("madeAt"),
            fields.text("problemDigest"),
            fields.text("digest"),
            Objective.read(fields.nested("objective")),
            LoadBalance.read(fields.nested("before")),
            LoadBalance.read(fields.nested("after")),
            Certificate.read(fields.nested("certificate")),
            MoveTotals.read(fields.nested("moved")),
            fields.integer("partitions"),
            fields.integer("withoutLoad"),
            fields.integer("withoutConsumption"),
            fields.integer("held"),
            tuple(BrokerLoad.read(StrictObject(b, f"brokers[{i}]")) for i, b in enumerate(fields.array("brokers"))),
            None if forecast is None else Forecast.read(forecast),
        )
        fields.finish()
        return made


def problem_digest(terms: ProblemHeader, partitions: Iterable[tuple[PartitionInput, tuple[int, int] | None]]) -> str:
    """Digest of a problem together with its loads: SHA-256, in hex.

    Each partition comes with its P and C, the bytes/s in and out, or None where it has no load row, in the order of
    (topic, topic id, partition).
    """

    def lines() -> Iterator[bytes]:
        for slot, load in partitions:
            replicas, isr = (",".join(map(str, brokers)) for brokers in (slot.replicas, slot.isr))
            p, c = ("-", "-") if load is None else load
            line = (slot.topic, slot.topic_id, slot.partition, replicas, isr, slot.leader, slot.held, p, c)
            yield ("\t".join(map(str, line)) + "\n").encode()

    return problem_digest_of_chunks(terms, chunk_digests(lines()))


def input_digest(problem: Problem) -> str:
    """Digest of a problem without loads, as the operator hands it to the job: SHA-256, in hex."""
    ordered = sorted(problem.partitions, key=lambda slot: (slot.topic, slot.topic_id, slot.partition))
    return problem_digest(problem.header, ((slot, None) for slot in ordered))


def problem_digest_of_chunks(terms: ProblemHeader, chunks: Iterable[str]) -> str:
    """The same digest from those of the chunks of its partitions' lines."""
    return digest_of_chunks(json.dumps(terms.document(), sort_keys=True, separators=(",", ":")), chunks)


def plan_digest(problem_digest: str, moves: Iterable[RebalanceMove]) -> str:
    """The digest that an approval names: of the problem, and of all orders in the plan.

    Moves come in the order of (topic, topic id, partition).
    """
    lines = (f"{m.topic}\t{m.topic_id}\t{m.partition}\t{','.join(map(str, m.order))}\n".encode() for m in moves)
    return plan_digest_of_chunks(problem_digest, chunk_digests(lines))


def plan_digest_of_chunks(problem_digest: str, chunks: Iterable[str]) -> str:
    """The same digest from those of the chunks of its moves' lines."""
    return digest_of_chunks(problem_digest, chunks)[:DIGEST_LETTERS]


def move_of(slot: PartitionInput, to_leader: int, load: int) -> RebalanceMove:
    """The move that gives a partition this leader: it comes first, the others keep their order."""
    order = (to_leader, *(b for b in slot.replicas if b != to_leader))
    return RebalanceMove(slot.topic, slot.topic_id, slot.partition, slot.replicas, order, slot.leader, to_leader, load)


def is_move(slot: PartitionInput, to_leader: int) -> bool:
    """Whether that leader requires a move: it differs, or it is not first in the replica order."""
    return to_leader != NO_BROKER and (to_leader != slot.leader or to_leader != slot.replicas[0])
