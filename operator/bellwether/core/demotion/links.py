"""Keep both ends of a broken link from leading what they share: a third replica, which reaches both, leads instead.

In: the context, the brokers that stay demoted, and those with a demoted log directory. Out: the broken links, the
partitions that neither end may lead, and what is held. Called by ``decisions``. With other leaders there is no lag
between the two any more, so only the return of leaders, step by step, shows whether the link is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from bellwether.core.demotion.cap import demoted_by_signals, is_shared, shared_symptom
from bellwether.core.demotion.log_dirs import LogDirDecisions
from bellwether.core.demotion.parts import AdmittedParts, admit_parts, by_partition, return_blocker
from bellwether.core.demotion.restoration import baseline_leader
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.links import LinkEvidence
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.history.known_good import NOT_YET_GOOD, Good, KnownGood, KnownGoods
from bellwether.core.model.refusals import BrokerHold, Refusal
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.model.undo_record import BrokenLink, DemotedBroker, EntryState, Link
from bellwether.core.reasons import Reason

WATCHED_SECONDS = 60
"""How long a link is remembered once all leaders are back: lag between its ends would be reported by then, and its
next stabilization time is longer.
"""

_MAY_LEAD = (HealthState.HEALTHY, HealthState.SUSPECT)


@dataclass(frozen=True)
class LinkDecisions:
    """Broken links, and what follows. ``dwelling`` has seconds left by broker."""

    broken: Mapping[Link, BrokenLink] = field(default_factory=dict)
    partitions: Mapping[Link, frozenset[PartitionKey]] = field(default_factory=dict)
    """The partitions that neither end may lead."""
    held: tuple[BrokerHold, ...] = ()
    dwelling: Mapping[int, float] = field(default_factory=dict)
    known_good: KnownGoods = field(default_factory=dict, compare=False)
    """How long each of them is known to be well, since its last wave."""

    @property
    def replicas(self) -> Mapping[PartitionKey, frozenset[int]]:
        """The same by partition: brokers that may not lead it."""
        return by_partition((keys, link) for link, keys in self.partitions.items())


def decide_links(
    kept: Mapping[int, DemotedBroker], log_dirs: LogDirDecisions, context: Context, evidence: LinkEvidence
) -> LinkDecisions:
    """Decide between which brokers nothing is led by either end from now on. ``kept`` stay demoted as a whole."""
    broken, known_good, held = _still_broken(context, evidence)
    thirds = _Thirds(kept, log_dirs, context)
    new = sorted(evidence.broken - broken.keys())
    admitted = _admitted(new, broken, kept, log_dirs, thirds, context)
    broken |= {link: BrokenLink(link, context.snapshot.now) for link in admitted.parts}
    held += [
        BrokerHold(end, why.reason, f"{link} do not reach each other; {why.message}")
        for link, why in admitted.refused
        for end in link
    ]
    partitions = {link: thirds.partitions(one) for link, one in sorted(broken.items())}
    return LinkDecisions(dict(sorted(broken.items())), partitions, tuple(held), admitted.dwelling, known_good)


def keep_links(broken: Iterable[BrokenLink], kept: Mapping[int, DemotedBroker], context: Context) -> LinkDecisions:
    """Decisions to keep exactly these links as they are."""
    found, thirds = {one.link: one for one in broken}, _Thirds(kept, LogDirDecisions(), context)
    return LinkDecisions(found, {link: thirds.partitions(one) for link, one in found.items()})


def _still_broken(
    context: Context, evidence: LinkEvidence
) -> tuple[dict[Link, BrokenLink], KnownGoods, list[BrokerHold]]:
    """Links that others lead for, after this reconcile. A link ends at once if an end is not alive any more, or if an
    override lets an end lead.
    """
    broken, known_good, held = {}, dict[Good, KnownGood](), list[BrokerHold]()
    snapshot, enabled = context.snapshot, context.policy.detection.replication_lag.enabled
    alive = snapshot.cluster.live | snapshot.cluster.unlisted
    for link, was in sorted(snapshot.record.links.items()) if enabled else ():
        if any(map(snapshot.promoted_by_override, link)) or not alive.issuperset(link):
            continue
        if link in evidence.broken:
            # The return of leaders, if it had begun, is undone.
            undone = was.wave is not None and context.deferral is None
            broken[link] = BrokenLink(was.link, was.since, was.times + 1) if undone else was
            continue
        well, now = evidence.well(link) or None, snapshot.now
        promotion = context.policy.promotion
        wait = promotion.stabilization(was.times) if was.wave is None else promotion.waves.pause_seconds
        known = snapshot.known_good.get(link, NOT_YET_GOOD).after(well, now, wait)
        after = _unseen(was, bool(well) and known.seconds >= wait, context, held)
        if after is not None:
            broken[link] = after
            known_good[link] = known if after is was else replace(known, seconds=0.0)
    return broken, known_good, held


def _unseen(was: BrokenLink, due: bool, context: Context, held: list[BrokerHold]) -> BrokenLink | None:
    """A link that is not seen to be broken; its next wave is ``due`` once it is known to be well for long enough."""
    if was.wave is not None and was.share >= 100:
        return was if context.snapshot.now - was.wave.waved_at < timedelta(seconds=WATCHED_SECONDS) else None
    if not due:
        return was
    if (blocker := return_blocker(context, " at one end")) is not None:
        text = f"no lag between {was.link} any more; {blocker.message}"
        held += [BrokerHold(end, blocker.reason, text) for end in was.link]
        return was
    return replace(was, wave=_next_wave(was, context))


def _next_wave(was: BrokenLink, context: Context) -> ReturningBroker:
    snapshot, waves = context.snapshot, context.policy.promotion.waves
    at = was.wave or ReturningBroker(was.link.one, 0, snapshot.now, snapshot.now)
    due = [p.key for p in _shared(was.link, context) if baseline_leader(p, snapshot) in was.link]
    share = 100 if was.wave is None and len(due) <= waves.skip_up_to_leaders else waves.after(at.share)
    return at.with_share(share, snapshot.now, due)


def _admitted(
    new: list[Link],
    broken: Mapping[Link, BrokenLink],
    kept: Mapping[int, DemotedBroker],
    log_dirs: LogDirDecisions,
    thirds: _Thirds,
    context: Context,
) -> AdmittedParts[Link]:
    """New links within the cap, next to demoted brokers, demoted directories and other links."""
    snapshot = context.snapshot
    new = [link for link in new if all(_eligible(end, kept, context) for end in link)]
    if not new:
        return AdmittedParts()
    active = [link for link, one in broken.items() if one.share < 100]

    def refusal(link: Link) -> Refusal | None:
        if context.deferral is not None or thirds.partitions(BrokenLink(link, snapshot.now)):
            return context.deferral
        text = "no partition in scope of both has a third replica that is Healthy and in the ISR: leaders stay"
        return Refusal(Reason.NO_HEALTHY_ISR_MEMBER, text)

    return admit_parts(
        new,
        tuple,
        demoted_by_signals(kept, snapshot) | {one.broker for one in log_dirs.demoted} | {a.one for a in active},
        context,
        shared=_shared_cause([*new, *active], kept, context),
        refusal=refusal,
        how="demoted by signals, or at one end of a broken link",
        beyond="repair the link",
    )


def _eligible(broker: int, kept: Mapping[int, DemotedBroker], context: Context) -> bool:
    """Whether signals decide about a broker's links: not where it is demoted, held, overridden or worse."""
    snapshot = context.snapshot
    kept_off = broker in kept or snapshot.may_be_held(broker) or snapshot.overridden(broker)
    return not kept_off and context.verdicts[broker].state in _MAY_LEAD


def _shared_cause(links: list[Link], kept: Mapping[int, DemotedBroker], context: Context) -> str | None:
    """Several links that touch half of the live brokers or more are one fault of the network, not of its pairs."""
    ends = frozenset(end for link in links for end in link)
    live = len(context.snapshot.cluster.live)
    if len(links) > 1 and is_shared(len(ends), live):
        return (
            f"{len(links)} links between {len(ends)} of {live} live brokers are broken, probably by a shared cause such"
            " as a switch: no further leaders are moved for them"
        )
    return shared_symptom(kept, context)


def _shared(link: Link, context: Context) -> Iterable[Partition]:
    """Partitions in scope with a replica at both ends."""
    return (p for p in context.managed.held_by(link.one) if link.other in p.replicas)


@dataclass(frozen=True)
class _Thirds:
    """Which partitions of a link a third replica may lead."""

    kept: Mapping[int, DemotedBroker]
    log_dirs: LogDirDecisions
    context: Context

    def partitions(self, broken: BrokenLink) -> frozenset[PartitionKey]:
        """Partitions that neither end may lead now.

        One that a third replica leads because of the link stays with it, whatever becomes of it, unless it is demoted:
        leaders must not go to and fro with the health of a third broker.
        """
        return frozenset(
            p.key
            for p in _shared(broken.link, self.context)
            if broken.keeps_from_leading(p.key)
            and (self._moved(p, broken.link) or any(self._leads_well(b, p.key, broken) for b in p.isr))
        )

    def _moved(self, partition: Partition, link: Link) -> bool:
        entry = self.context.snapshot.record.entries.get(partition.key)
        if entry is None or entry.state is EntryState.RESTORED or entry.written[0] in link:
            return False
        return any(not self._demoted(b, partition.key) for b in partition.replicas if b not in link)

    def _demoted(self, broker: int, key: PartitionKey) -> bool:
        return broker in self.kept or broker in self.log_dirs.replicas.get(key, ())

    def _leads_well(self, broker: int, key: PartitionKey, broken: BrokenLink) -> bool:
        """Whether a third broker may take a partition: a Healthy one reaches both ends. One that has become Healthy
        since the link broke must have been so for the stabilization time.
        """
        context, verdict = self.context, self.context.verdicts.get(broker)
        if context.deferral is not None or broker in broken.link:
            return False
        if verdict is None or verdict.state is not HealthState.HEALTHY or broker not in context.snapshot.cluster.live:
            return False
        if self._demoted(broker, key):
            return False
        stable = timedelta(seconds=context.policy.promotion.stabilization_seconds)
        return verdict.since <= broken.since or context.snapshot.now - verdict.since >= stable
