"""What a finding's message says beyond its signals: what requests break at, who waits for a broker, why one is silent.

In: causes; or a finding, the signals and the leaders. Out: words; or the finding with another message, never with
another result. Called by ``reachability`` and ``verdicts``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from bellwether.core.detection.findings import Finding, SignalIndex, recent
from bellwether.core.detection.harm import PROBES_LOST
from bellwether.core.detection.storage import stalled_without_metadata_log
from bellwether.core.reasons import Reason
from bellwether.core.signals import ON_BROKER_HOST, Reading, Signal, SignalType, UnreachableCause


class CauseWords(NamedTuple):
    """What happens, and what to check."""

    what: str
    check: str


WORDS: Mapping[UnreachableCause, CauseWords] = {
    UnreachableCause.REFUSED: CauseWords(
        "connections are refused", "check the load balancer's target and the listener's port"
    ),
    UnreachableCause.NO_ROUTE: CauseWords("there is no route to its address", "check routes and network policies"),
    UnreachableCause.NO_CONNECTION: CauseWords(
        "connection requests get no answer", "check firewalls, network policies and the load balancer's target"
    ),
    UnreachableCause.NAME_UNKNOWN: CauseWords("its name is unknown", "correct the DNS record, or advertised.listeners"),
    UnreachableCause.TLS_SILENT: CauseWords(
        "TLS gets no answer", "check what the load balancer forwards to, and the listener's max.connections"
    ),
    UnreachableCause.TLS_FAILED: CauseWords("TLS fails", "check that the port is a TLS listener"),
    UnreachableCause.CERTIFICATE_EXPIRED: CauseWords(
        "its certificate has expired or is not valid yet", "renew the certificate, and check clocks"
    ),
    UnreachableCause.CERTIFICATE_INVALID: CauseWords(
        "its certificate is not trusted", "check the certificate's CA and host names"
    ),
    UnreachableCause.CREDENTIALS_REFUSED: CauseWords(
        "it refuses credentials that other brokers take", "check its listener's users and trusted CAs"
    ),
    UnreachableCause.CONNECTION_CLOSED: CauseWords(
        "connections are closed without an answer",
        "check max.connections.per.ip, the listener's protocol and the load balancer's target",
    ),
    UnreachableCause.NO_ANSWER: CauseWords(
        "connections get no answer",
        "connections may be used up: compare their number with the listener's max.connections",
    ),
    UnreachableCause.WRONG_BROKER: CauseWords(
        "another broker answers", "correct the load balancer's target, or advertised.listeners"
    ),
    UnreachableCause.SLOW: CauseWords(
        "answers take many times as long as its peers'",
        "check the bandwidth of the load balancer and the network to this broker, and who uses it",
    ),
}


def cause_words(failing: Sequence[Signal]) -> str:
    """What the requests of failing signals break at, and what to check; empty where no source says it.

    Where the internal listener fails as well it is the broker or its host, not the way to one of its listeners.
    """
    main = main_cause(failing)
    if main is None:
        return ""
    controls = {s.control for s in failing}
    check = f" ({WORDS[main].check})" if Reading.PASSING in controls or Reading.FAILING not in controls else ""
    sources = defaultdict[UnreachableCause, list[str]](list)
    for signal in failing:
        if signal.cause is not None:
            sources[signal.cause].append(signal.source)
    if len(sources) == 1:
        return f"{WORDS[main].what}{check}"
    each = "; ".join(f"{WORDS[cause].what} from {', '.join(named)}" for cause, named in sources.items())
    return f"{each}{check}"


def main_cause(failing: Sequence[Signal]) -> UnreachableCause | None:
    """The most frequent cause of failing signals; None where no source says it."""
    counted = Counter(s.cause for s in failing if s.cause is not None).most_common(1)
    return counted[0][0] if counted else None


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
