"""Canary: judge a broker by what its clients feel, by a quorum of vantages. Called by ``verdicts``.

The probers have counted requests that failed or missed their objective. Whether a broker can be reached at all is
judged by ``reachability``: while that finding is in doubt, or the broker waits to be fenced, the canary adds evidence
and no verdict.
"""

from __future__ import annotations

from bellwether.core.detection.findings import Finding, SignalIndex, evidence_item, fresh, passing
from bellwether.core.detection.health_states import Evidence
from bellwether.core.detection.reachability import quorum
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import OnFailing
from bellwether.core.signals import Reading, SignalType

CANARY_SEVERITY = 4


def canary(broker: int, index: SignalIndex, reached: Finding | None, *, asked: bool) -> Finding | None:
    """Judge one broker; None if no canary reports on it. ``reached`` is the finding of ``reachability``.

    ``asked``: the canary demoted the broker, so it must pass again.
    """
    settings, vantages = index.detection.canary, index.canary_vantages
    said = index.about(broker, SignalType.CANARY)
    if not said and not asked:
        return None
    ignored = {s.source: "the policy does not name this vantage" for s in said if s.source not in vantages}
    failed = "every broker fails from this vantage, so the vantage itself has failed"
    ignored |= dict.fromkeys(index.canary_blind, failed)
    facts = tuple([evidence_item(s, settings.stale_after_seconds, ignored.get(s.source, "")) for s in said])
    words = [s for s in said if s.source not in ignored and fresh(s, settings.stale_after_seconds)]
    failing = sorted((s for s in words if s.reading is Reading.FAILING), key=lambda s: s.source)
    total, need = len(vantages), quorum(len(vantages))
    names = ", ".join(s.source for s in failing)
    if len(failing) >= need > 0:
        worst = max(failing, key=lambda s: s.harm.lost_seconds if s.harm is not None else 0.0)
        text = f"clients at {names} ({len(failing)} of {total} vantages) lose requests: {worst.message}"
        change = f"fewer than {need} of {total} vantages losing requests"
        doubtful = reached is not None and reached.evidence in (Evidence.GONE, Evidence.DOUBTFUL)
        if doubtful or settings.on_failing is OnFailing.SUSPECT:
            return Finding(Evidence.DOUBTFUL, Reason.CANARY_FAILING, text, facts=facts, change=change)
        return Finding(Evidence.BAD, Reason.CANARY_FAILING, text, CANARY_SEVERITY, facts, change)
    if failing:
        text = f"clients at {names} of {total} vantages lose requests, {need} vantages are needed"
        return Finding(Evidence.DOUBTFUL, Reason.VANTAGES_DISAGREE, text, facts=facts)
    if asked and len(words) < need:
        text = f"the canary has fresh evidence from {len(words)} of {total} vantages, {max(need, 1)} are needed"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts)
    return passing(facts)
