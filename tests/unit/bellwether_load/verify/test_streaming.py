"""Partitions and moves pass by side by side: neither is held, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.problem import PartitionInput
from bellwether_load.verify.plan_verifier import verify
from testkit.loads.small_planner import load_rows, loads, planned, problem, slot


def test_moves_are_read_when_their_partition_comes() -> None:
    posed = problem(*(slot(i) for i in range(300)))
    known = loads(posed, *(float(i % 7 + 1) for i in range(300)))
    plan, moves = planned(posed, known)
    at, ahead = 0, []

    def partitions() -> Iterator[PartitionInput]:
        nonlocal at
        for at, one in enumerate(posed.partitions):  # noqa: B007 - read by the other generator
            yield one

    def passing() -> Iterator[RebalanceMove]:
        for move in moves:
            ahead.append(posed.partitions[at].partition - move.partition)
            yield move

    report = verify(posed.header, header_line(posed.header), partitions(), load_rows(posed, known), plan, passing())
    assert report.passed
    # One move is looked at ahead of its partition, and none waits behind.
    gaps = [b.partition - a.partition for a, b in pairwise(moves)]
    assert min(ahead) >= -max(gaps)
    assert max(ahead) <= 0
