"""Links between brokers: which pairs do not fetch from each other, by the replication signals of both ends.

In: signals of replication lag. Out: the broken links, those that are known to be well, and the finding for a broker.
Called by ``verdicts`` and by ``demotion.links``. A link that one end alone reports is neither broken nor well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bellwether.core.detection.findings import Finding, SignalIndex, recent
from bellwether.core.detection.health_states import Evidence
from bellwether.core.listing import named
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import BrokenLink, Link
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Reading, SignalType

SEVERITY = 1


@dataclass(frozen=True)
class LinkEvidence:
    """What live brokers report that replicate well otherwise: the peers that each does not reach."""

    unreached: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @staticmethod
    def of(snapshot: Snapshot, detection: Detection) -> LinkEvidence:
        """Evidence of all brokers that are live and not drained."""
        settings = detection.replication_lag
        if not settings.enabled:
            return LinkEvidence()
        found: dict[int, set[int]] = {}
        for signal in snapshot.signals:
            passing = signal.reading is Reading.PASSING and recent(signal, settings.stale_after_seconds)
            if signal.type != SignalType.REPLICATION_LAG or not passing:
                continue
            if signal.broker in snapshot.cluster.live and signal.broker not in snapshot.drained:
                peers = found.setdefault(signal.broker, set())
                if signal.broken_link_to is not None:
                    peers.add(signal.broken_link_to)
        return LinkEvidence({broker: frozenset(peers) for broker, peers in found.items()})

    @cached_property
    def broken(self) -> frozenset[Link]:
        """Links that both ends report."""
        return frozenset(Link.between(broker, peer) for broker in self.unreached for peer in self.peers(broker))

    def peers(self, broker: int) -> frozenset[int]:
        """The brokers that this one does not reach, and that report the same of it."""
        named = self.unreached.get(broker, frozenset())
        return frozenset(p for p in named if p != broker and broker in self.unreached.get(p, frozenset()))

    def well(self, link: Link) -> bool:
        """Whether both ends report, and neither names the other."""
        return all(
            end in self.unreached and peer not in self.unreached[end]
            for end, peer in ((link.one, link.other), (link.other, link.one))
        )


def broken_link(broker: int, index: SignalIndex, evidence: LinkEvidence, known: Iterable[BrokenLink]) -> Finding | None:
    """The finding for one end: a link is broken, or was until lately and its leaders have not begun to return.

    Without evidence there is no finding, and none for a demoted broker, which leads nothing.
    """
    if broker in index.snapshot.record.demoted:
        return None
    peers, signal = evidence.peers(broker), SignalType.REPLICATION_LAG
    if peers:
        names = named(sorted(peers), len(peers))
        text = (
            f"it and {names} do not reach each other: each lags behind the other alone, and keeps up with its other"
            " leaders; acks=all waits on the partitions that they share"
        )
        change = f"the network path to {names} working"
        return Finding(Evidence.DOUBTFUL, Reason.BROKEN_LINK, text, SEVERITY, change=change, signal=signal, links=peers)
    left = [b.link for b in known if b.wave is None and b.link.peer(broker) is not None and evidence.well(b.link)]
    if not left:
        return None
    far = {end for link in left for end in link if end != broker}
    names = named(sorted(far), len(far))
    text = (
        f"it and {names} did not reach each other; other brokers lead the partitions that they share, whose leaders"
        " return after the stabilization time without lag between the two"
    )
    change = "the stabilization time without lag between the two"
    return Finding(Evidence.DOUBTFUL, Reason.BROKEN_LINK, text, SEVERITY, change=change, signal=signal)
