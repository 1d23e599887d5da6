"""Seconds of service that clients lost in a stretch of time, in the unit in which harm is counted. Pure.

In: records with when they were due and done. Out: the share of late or failed records of each slice, added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from cures.traffic import Sent

SLICE_SECONDS = 0.1


def reached_objective(sent: Iterable[Sent], begin: float, end: float, objective_seconds: float) -> float:
    """The objective, or twice the latency that one record in a hundred exceeded from ``begin`` to ``end``.

    A busy machine may miss the objective before anything moves: what it reaches then is what a move can spoil.
    """
    usual = sorted(s.seconds for s in sent if begin <= s.due < end)
    return max(objective_seconds, 2 * usual[int(0.99 * (len(usual) - 1))]) if usual else objective_seconds


def lost_seconds(sent: Sequence[Sent], begin: float, end: float, objective_seconds: float) -> float:
    """Seconds of lost service from ``begin`` to ``end`` (monotonic): a slice of which half is late counts half.

    A slice without records counts nothing.
    """
    chosen = sorted((s for s in sent if begin <= s.due < end), key=lambda s: s.due)
    slices = [begin + n * SLICE_SECONDS for n in range(round((end - begin) / SLICE_SECONDS) + 1)]
    lost, at = 0.0, 0
    for first, after in pairwise(slices):
        late = records = 0
        while at < len(chosen) and chosen[at].due < after:
            late += _late(chosen[at], objective_seconds)
            records += 1
            at += 1
        lost += late / records * (after - first) if records else 0.0
    return lost


def _late(one: Sent, objective_seconds: float) -> bool:
    return bool(one.error) or one.seconds > objective_seconds
