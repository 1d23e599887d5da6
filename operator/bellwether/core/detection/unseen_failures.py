"""Find failures between two reconciles: a signal passes in both, but its reading changed in between.

In: the evidence of the last verdict and of this one. Called by ``verdicts`` for demoted brokers, whose stabilization
starts again. Only start times of the same source are compared with each other, so a prober's clock does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.signals import Reading, SignalType


def failed_in_between(last: Iterable[EvidenceItem], now: Iterable[EvidenceItem]) -> bool:
    """Whether a signal that counts now passes since another time than in the last verdict.

    A source that is new, or that did not pass at the last verdict, is not compared: the last verdict had that already.
    Neither is the socket table: a demoted broker may have no clients.
    """
    began = {(item.type, item.source): item.since for item in last if item.reading is Reading.PASSING}
    counted = (item for item in now if item.type != SignalType.SELF_REACHABILITY and not item.ignored_because)
    passing = (item for item in counted if item.reading is Reading.PASSING)
    return any(began.get((item.type, item.source), item.since) != item.since for item in passing)
