"""What a finding's message says beyond its signals: that the broker leads nothing, or that its silent host is up.

In: a finding, the signals and the leaders. Out: the finding with another message, never with another result. Called by
``verdicts``.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.detection.findings import EvidenceItem, Finding, SignalIndex, recent
from bellwether.core.detection.harm import CLIENTS_LOST
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import ON_BROKER_HOST

SILENT = frozenset({Reason.BROKER_DOWN, Reason.UNREACHABLE, Reason.NOT_FENCED_IN_TIME})
"""Reasons of a broker that gives no answer."""


def explained(found: Finding, broker: int, index: SignalIndex, silent_since: datetime | None) -> Finding:
    """The finding with its full message. ``silent_since``: when the broker ceased to answer, None if it answers."""
    return _with_host(_with_leaders(found, broker, index), broker, index, silent_since)


def _with_leaders(found: Finding, broker: int, index: SignalIndex) -> Finding:
    """A broker that leads nothing has no clients that lose requests: from then on only probes do."""
    if index.snapshot.cluster.leader_counts[broker]:
        return found
    facts = tuple([_of_probes(fact) for fact in found.facts])
    if CLIENTS_LOST not in found.message:
        return found._replace(facts=facts)
    text = f"{_by_probes(found.message)}; it leads nothing, so its clients lose nothing more"
    return found._replace(message=text, facts=facts)


def _of_probes(fact: EvidenceItem) -> EvidenceItem:
    return fact._replace(message=_by_probes(fact.message)) if CLIENTS_LOST in fact.message else fact


def _by_probes(message: str) -> str:
    return message.replace(CLIENTS_LOST, "probes lost")


def _with_host(found: Finding, broker: int, index: SignalIndex, silent_since: datetime | None) -> Finding:
    """Whether a source on the host of a silent broker reports: then it is the process that hangs or is stopped.

    A report from before it fell silent says nothing: the sidecars of a host that is lost are not stale at once.
    """
    if found.reason not in SILENT or silent_since is None:
        return found
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
        f"{found.message}; {reporting[0]} is still reported from its host: the host is up, and the process hangs, is"
        " stopped (frozen) or does not run"
    )
    return found._replace(message=text)
