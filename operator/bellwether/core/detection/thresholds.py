"""Signals judged by their reading alone: built-in ones, Prometheus rules and plug-in signal types.

Called by ``verdicts`` for each broker. The reading is failing if enough sources fail. A source that is not deployed has
no effect; a source that became stale prevents the promotion of a demoted broker.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellwether.core.detection.findings import Finding, SignalIndex, evidence_item, fresh, passing
from bellwether.core.detection.health_states import Evidence
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import ThresholdSignals
from bellwether.core.settings.source_settings import OnFailing
from bellwether.core.signals import Reading

THRESHOLD_SEVERITY = 2


def threshold_findings(
    broker: int, index: SignalIndex, *, demoted: bool, demotion: DemotedBroker | None
) -> Iterator[Finding]:
    """Findings for one broker, for each signal type that is judged by threshold alone.

    ``demotion`` is its demotion by signals, if any: the signal that caused it must be known to pass again.
    """
    for watch in index.detection.threshold_signals:
        if watch.leaders_only and demoted:
            continue
        asked = demotion is not None and demotion.signal == watch.type
        found = _one(broker, watch, index, demoted=demoted, asked=asked)
        if found is not None:
            yield found


def _one(broker: int, watch: ThresholdSignals, index: SignalIndex, *, demoted: bool, asked: bool) -> Finding | None:
    said = [s for s in index.about(broker, watch.type) if watch.covers(str(s.type), s.source)]
    words = [s for s in said if fresh(s, watch.stale_after_seconds)]
    failing = sorted((s for s in words if s.reading is Reading.FAILING), key=lambda s: s.source)
    facts = tuple(evidence_item(s, watch.stale_after_seconds) for s in said)
    name = f"{watch.type}/{watch.source}" if watch.source else watch.type
    if len(failing) >= watch.quorum:
        first = failing[0]
        text = f"{name} fails: {first.message}" if first.message else f"{name} fails"
        change = f"fewer than {watch.quorum} of its sources failing" if watch.quorum > 1 else f"{name} passing"
        if watch.on_failing is OnFailing.SUSPECT:
            return Finding(Evidence.DOUBTFUL, watch.reason, text, facts=facts, change=change, signal=watch.type)
        return Finding(Evidence.BAD, watch.reason, text, THRESHOLD_SEVERITY, facts, change, watch.type)
    if failing:
        text = f"{name} fails at {len(failing)} of its sources, {watch.quorum} are needed"
        return Finding(Evidence.DOUBTFUL, watch.reason, text, facts=facts, signal=watch.type)
    if not words:
        if not said and not asked:
            return None
        # A stale source does not make an undemoted broker Unknown: other signal types still judge it.
        if asked or (demoted and watch.on_failing is OnFailing.DEMOTE):
            return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, f"{name} has no fresh evidence", facts=facts)
    return passing(facts)
