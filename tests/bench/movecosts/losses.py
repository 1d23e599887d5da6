"""Seconds of service that clients lost in a stretch of time, in the unit in which harm is counted. Pure.

In: records with when they were due and done. Out: the share of late or failed records of each slice, added up, less
the share that was late before anything moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from quarantines.traffic import Sent

SLICE_SECONDS = 0.1


def late_share(sent: Iterable[Sent], begin: float, end: float, objective_seconds: float) -> float:
    """Share of the records due from ``begin`` to ``end`` (monotonic seconds) that failed or missed the objective."""
    chosen = [_late(s, objective_seconds) for s in sent if begin <= s.due < end]
    return sum(chosen) / len(chosen) if chosen else 0.0


def lost_seconds(
    sent: Sequence[Sent], begin: float, end: float, objective_seconds: float, usual_share: float = 0.0
) -> float:
    """Seconds of lost service from ``begin`` to ``end``: a slice in which half of the records are late counts half.

    ``usual_share`` of each slice is not counted. A slice without records counts nothing.
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
        lost += max(0.0, late / records - usual_share) * (after - first) if records else 0.0
    return lost


def _late(one: Sent, objective_seconds: float) -> bool:
    return bool(one.error) or one.seconds > objective_seconds
