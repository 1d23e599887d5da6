"""What a finding's message says beyond its signals: who waits for a broker that leads nothing, and why one is silent.

In: a finding, the signals and the leaders. Out: the finding with another message, never with another result. Called by
``verdicts``.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.detection.findings import Finding, SignalIndex, recent
from bellwether.core.detection.harm import PROBES_LOST
from bellwether.core.detection.storage import stalled_without_metadata_log
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import ON_BROKER_HOST
from bellwether.core.signals import Reading, SignalType

SILENT = frozenset({Reason.BROKER_DOWN, Reason.UNREACHABLE, Reason.NOT_FENCED_IN_TIME})
"""Reasons of a broker that gives no answer."""


def explained(found: Finding, broker: int, index: SignalIndex, silent_since: datetime | None) -> Finding:
    """The finding with its full message. ``silent_since``: when the broker ceased to answer, None if it answers."""
    return _with_host(_with_leaders(found, broker, index), broker, index, silent_since)


def _with_leaders(found: Finding, broker: int, index: SignalIndex) -> Finding:
    """Who still waits for a broker that leads nothing: acks=all does for its disk and in its freezes, in each ISR."""
    cluster = index.snapshot.cluster
    if cluster.leader_counts[broker] or PROBES_LOST not in found.message:
        return found
    slow = any(f.type == SignalType.STORAGE_LATENCY and f.reading is Reading.FAILING for f in found.facts)
    awaited = (slow or found.reason is Reason.FREEZING) and any(broker in p.isr for p in cluster.held_by(broker))
    waits = "acks=all still waits for it in its ISRs" if awaited else "no client waits for it"
    return found._replace(message=f"{found.message}; it leads no partition; {waits}")


def _with_host(found: Finding, broker: int, index: SignalIndex, silent_since: datetime | None) -> Finding:
    """Whether a source on the host of a silent broker reports: then it is the process that hangs or is stopped.

    A report from before it fell silent says nothing: the sidecars of a host that is lost are not stale at once.
    """
    if found.reason not in SILENT or silent_since is None or stalled_without_metadata_log(index.disks_heard(broker)):
        return found
    if index.snapshot.is_quarantined(broker):
        until = "after a while" if index.snapshot.quarantine_orders[broker].freezes else "when its disk is fast"
        return found._replace(message=f"{found.message}; it is held in quarantine, and comes back {until}")
    silent = (index.snapshot.now - silent_since).total_seconds()
    reporting = [
        type_
        for type_ in ON_BROKER_HOST
        for signal in index.about(broker, type_)
        if recent(signal, min(silent, index.detection.stale_after(type_, signal.source) or 0))
    ]
    if not reporting:
        return found
    text = (
        f"{found.message}; the probe of {reporting[0]} still reports from its host: the host is up, and the process"
        " hangs, is stopped (frozen) or does not run"
    )
    return found._replace(message=text)
