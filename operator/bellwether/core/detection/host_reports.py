"""Whether the host of a broker that gives no answer is up: then it is the process that hangs or is stopped.

In: the signals of the sidecars in the broker's pod. Out: the end of a message. Called by ``verdicts``. It explains a
verdict and changes none.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.detection.findings import Finding, SignalIndex, recent
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.signals import SignalType

SILENT = frozenset({Reason.BROKER_DOWN, Reason.UNREACHABLE, Reason.NOT_FENCED_IN_TIME})
"""Reasons of a broker that gives no answer."""

_ON_ITS_HOST = (SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY, SignalType.SELF_REACHABILITY, QUARANTINE_AGENT)


def with_host(found: Finding, broker: int, index: SignalIndex, silent_since: datetime | None) -> Finding:
    """The finding, which says so if a source on the broker's host has reported since the broker gives no answer.

    A report from before then says nothing: the sidecars of a host that is lost are not stale at once.
    """
    if found.reason not in SILENT or silent_since is None:
        return found
    silent = (index.snapshot.now - silent_since).total_seconds()
    reporting = [
        type_
        for type_ in _ON_ITS_HOST
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
