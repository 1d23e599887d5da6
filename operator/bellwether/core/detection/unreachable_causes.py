"""Why a broker cannot be reached, in words: what requests break at, and what to check.

In: failing signals of reachability. Out: the cause as part of a sentence. Called by ``reachability``; the runbook has
the same table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellwether.core.signals import Reading, Signal, UnreachableCause


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
