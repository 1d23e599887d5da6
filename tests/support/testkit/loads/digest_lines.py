"""Digests of problems and plans from their values, line by line, as docs/load/files.md says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.problem import PartitionInput, Problem, ProblemHeader


def digest(first: str, lines: Sequence[str]) -> str:
    """Of a first line and the digest of each 4,096 others."""
    chunks = (lines[at : at + 4096] for at in range(0, len(lines), 4096))
    texts = ("".join(f"{line}\n" for line in chunk).encode("utf-8", "surrogatepass") for chunk in chunks)
    digests = "".join(f"{hashlib.sha256(text).hexdigest()}\n" for text in texts)
    return hashlib.sha256(f"{first}\n{digests}".encode()).hexdigest()


def problem_digest(terms: ProblemHeader, partitions: Iterable[tuple[PartitionInput, tuple[int, int] | None]]) -> str:
    """Of a problem in order, each partition with its bytes/s in and out, None where it has no load."""
    lines = []
    for slot, load in partitions:
        replicas, isr = (",".join(map(str, brokers)) for brokers in (slot.replicas, slot.isr))
        keys = slot.topic, slot.topic_id, slot.partition
        lines.append("\t".join(map(str, (*keys, replicas, isr, slot.leader, slot.held, *(load or "--")))))
    return digest(header_line(terms), lines)


def input_digest(problem: Problem) -> str:
    """Of a problem without loads."""
    return problem_digest(problem.header, ((slot, None) for slot in problem.partitions))


def plan_digest(problem: str, moves: Iterable[RebalanceMove]) -> str:
    """Of a plan's moves in order."""
    lines = [f"{m.topic}\t{m.topic_id}\t{m.partition}\t{','.join(map(str, m.order))}" for m in moves]
    return digest(problem, lines)[:32]
