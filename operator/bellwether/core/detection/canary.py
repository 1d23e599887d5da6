"""Canary: weigh what clients of a broker lose by its canary against the cost of a move, by a quorum of vantages.

Called by ``verdicts``. The probers have counted requests that failed or missed their objective. Whether a broker can be
reached at all is judged by ``reachability``: while that finding is in doubt, or the broker waits to be fenced, the
canary adds evidence and no verdict. The other brokers' canaries decide whose fault it is.
"""

from __future__ import annotations

from bellwether.core.detection.findings import (
    EvidenceItem,
    Finding,
    SignalIndex,
    agreed,
    below_cost,
    lost_seconds,
    ongoing,
    passing,
    quorum,
    shared_cause,
    vantage_items,
)
from bellwether.core.detection.harm_weighing import Weighing, weigh
from bellwether.core.detection.health_states import Evidence
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import SHARED_RATIO
from bellwether.core.signals import Reading, SignalType

CANARY_SEVERITY = 4


def canary(broker: int, index: SignalIndex, reached: Finding | None, *, asked: bool) -> Finding | None:
    """Judge one broker; None if no canary reports on it. ``reached`` is the finding of ``reachability``.

    ``asked``: the canary demoted the broker, so it must pass again.
    """
    said = index.about(broker, SignalType.CANARY)
    if not said and not asked:
        return None
    patience, words = index.detection.canary.stale_after_seconds, index.heard(broker, SignalType.CANARY)
    facts = vantage_items(said, patience, index.canary_vantages, lambda signal: signal.source in index.canary_blind)
    failing = sorted((s for s in words if s.reading is Reading.FAILING), key=lambda s: s.source)
    total = len(index.canary_vantages)
    need = quorum(total)
    names = ", ".join(s.source for s in failing)
    if len(failing) >= need > 0:
        goes_on = sum(map(ongoing, failing)) >= need
        weighed = weigh(agreed(words, need), broker, index, HarmCause.STORAGE, ongoing=goes_on)
        worst = max(failing, key=lost_seconds)
        text = f"clients at {names} ({len(failing)} of {total} vantages) lose requests: {worst.message}; {weighed}"
        return _weighed(broker, weighed, text, index, reached, facts)
    if failing:
        text = f"clients at {names} of {total} vantages lose requests, {need} vantages are needed"
        change = f"{need} vantages losing requests makes it Sick, none Healthy"
        return Finding(Evidence.DOUBTFUL, Reason.VANTAGES_DISAGREE, text, facts=facts, change=change)
    if asked and len(words) < need:
        text = f"the canary has fresh evidence from {len(words)} of {total} vantages, {max(need, 1)} are needed"
        change = f"fresh evidence from {max(need, 1)} vantages: check their canary probers"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts, change=change)
    return passing(facts, f"clients at {need} of {total} vantages losing as much as a move costs")


def _weighed(
    broker: int,
    weighed: Weighing,
    text: str,
    index: SignalIndex,
    reached: Finding | None,
    facts: tuple[EvidenceItem, ...],
) -> Finding:
    """A quorum of vantages fails: whether moving is worth it, and whose fault it is."""
    if not weighed.worth_moving:
        if not weighed.noticeable and broker not in index.snapshot.record.demoted:
            return passing(facts, f"probes losing {weighed.limit_seconds:.1f} s: {weighed}")
        change = f"{weighed.change}, five seconds of answers in time Healthy"
        return below_cost(text, facts, change, SignalType.CANARY)
    if reached is not None and reached.evidence in (Evidence.GONE, Evidence.DOUBTFUL):
        change = "the vantages agreeing on whether the broker can be reached"
        return Finding(Evidence.DOUBTFUL, Reason.CANARY_FAILING, text, facts=facts, change=change)
    peers = index.canary_harm.of_peers(broker)
    if peers is None:
        text = f"{text}; no other broker's canary reports, so a shared cause cannot be excluded"
        change = "a canary partition on each of its peers"
        return shared_cause(text, facts, change, SignalType.CANARY)
    if weighed.shared_with(peers):
        text = f"{text}; so do clients of its peers (more than 1/{SHARED_RATIO:g} as much): probably a shared cause"
        change = "its probes losing much more than those of its peers"
        return shared_cause(text, facts, change, SignalType.CANARY)
    change = "five seconds of requests within the objectives, or its peers' probes losing as much"
    return Finding(Evidence.BAD, Reason.CANARY_FAILING, text, CANARY_SEVERITY, facts, change)
