"""Report of each broker: its verdict, its leaders, and the conditions of its BrokerHealth.

In: the context, plan and quarantine decisions. Out: one value per broker, for the report. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import is_

from bellwether.core.condition import Condition, of_type
from bellwether.core.demotion.cap import dwell_left
from bellwether.core.demotion.drain_check import stays_on, stop_check, stranded_message
from bellwether.core.demotion.restoration import RestorationProgress, baseline_leader
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Partition
from bellwether.core.model.history.flap_damping import FlapCounter, stabilization
from bellwether.core.model.log_dirs import DemotedLogDir
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.planning.plan import Plan
from bellwether.core.quarantine.hold_decision import QuarantineDecisions
from bellwether.core.reasons import DESCRIPTIONS, Reason, reason_named

_NOT_LAGGING = Condition("HoldsBackISR", False, Reason.NOT_BLOCKING_ACKS, "replication is not lagging")


@dataclass(frozen=True, slots=True)
class LogDirReport:
    """A demoted log directory, and how many partitions lie in it. ``acts``: it is, and not only would be, demoted."""

    demoted: DemotedLogDir
    partitions: int
    acts: bool = True


@dataclass(frozen=True, slots=True)
class LinkReport:
    """A broken link of a broker to ``peer``, and how many partitions of both others lead because of it.

    ``since`` is when that began; None if the policy does not act, and would only have it so. ``seen``: both ends report
    it, rather than that it is not known to be well yet.
    """

    peer: int
    partitions: int
    since: datetime | None = None
    seen: bool = True


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """Report of one broker."""

    broker: int
    verdict: Verdict
    rack: str | None
    registered: bool
    leaders: int
    preferred_leaders: int
    replicas: int
    demoted: DemotedBroker | None
    hold: BrokerHold | None
    inactivity: str = ""
    """Why the policy does not demote it, though it would if it acted."""
    dwell_left: float | None = None
    dwell_pending: bool = False
    """Sick for less than the dwell time: other brokers' signals may still show a shared cause."""
    waited_for: int = 0
    flaps: FlapCounter | None = None
    stabilization_seconds: int = 0
    pod: str = ""
    """Name of its pod, if known."""
    hosts: tuple[str, ...] = ()
    """What it advertises, as far as that is known."""
    restoration: RestorationProgress | None = None
    """Progress of its restoration, while it gets its leaders back in waves."""
    drained: Condition | None = None
    """Whether it may be stopped; None unless it is in maintenance."""
    ended: datetime | None = None
    """End of an expired override that is still in its object."""
    quarantine_order: QuarantineOrder | None = None
    """The active or recently ended order to hold it."""
    not_held: BrokerHold | None = None
    """Why it is not held though ``acks=all`` waits for it; None where the policy has no quarantine."""
    log_dirs: tuple[LogDirReport, ...] = ()
    """Its demoted log directories, where it is not demoted as a whole."""
    links: tuple[LinkReport, ...] = ()
    """Its broken links for which other brokers lead."""
    held: bool = False
    """Whether its quarantine agent reports that it holds it, by whatever order."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``Healthy``, ``Demoted`` and ``HoldsBackISR``, with the reasons of the decisions.

        ``Drained`` during maintenance, ``Overridden`` for an expired override, ``Quarantined`` where the broker is or
        was recently held, or would be but for a reason.
        """
        state = self.verdict.state
        healthy = None if state is HealthState.UNKNOWN else state is HealthState.HEALTHY
        return (
            Condition("Healthy", healthy, self.verdict.reason, self.verdict.message),
            self._demoted(),
            self.holds_back_isr,
            *([self.drained] if self.drained is not None else []),
            *self._ended(),
            *self._quarantined(),
        )

    def condition(self, type_: str) -> Condition:
        """The condition of that type. Raises KeyError if there is none."""
        return of_type(self.conditions, type_)

    @property
    def holds_back_isr(self) -> Condition:
        """Whether ``acks=all`` waits for this broker: a slow follower in an ISR, whether it leads or not."""
        slow = self.verdict.slow
        if slow is None and self.verdict.links and self.waited_for:
            text = "leaders that it does not reach have it in the ISR of their partitions: acks=all waits for it"
            return Condition("HoldsBackISR", True, Reason.BROKEN_LINK, text)
        if slow is None:
            return _NOT_LAGGING
        if not self.waited_for:
            text = "it is slow, but in no ISR of a partition that another broker leads"
            return Condition("HoldsBackISR", False, Reason.NOT_BLOCKING_ACKS, text)
        text = f"it is slow ({slow}) and in the ISR of partitions that other brokers lead: acks=all waits for it"
        return Condition("HoldsBackISR", True, slow, text)

    def _ended(self) -> Iterable[Condition]:
        if self.ended is not None:
            moment = self.ended.astimezone(UTC)
            text = f"spec.override ended at {moment:%Y-%m-%dT%H:%M:%SZ} and has no effect; remove it"
            yield Condition("Overridden", False, Reason.OVERRIDE_EXPIRED, text)

    def _demoted(self) -> Condition:
        held = f"; {self.hold.message}" if self.hold is not None else ""
        if self.demoted is not None:
            reason = reason_named(self.demoted.reason)
            return Condition("Demoted", True, reason, f"{self.demoted.message}{held}")
        if self.log_dirs:
            paths = ", ".join(one.demoted.log_dir.path for one in self.log_dirs)
            count = sum(one.partitions for one in self.log_dirs)
            verb = "is" if self.log_dirs[0].acts else "would be"
            text = f"only what lies in {paths} {verb} led by other brokers: {count} of its {self.replicas} partitions"
            return Condition("Demoted", False, Reason.LOG_DIR_SLOW, f"{text}{held}")
        if self.links:
            verb = "are" if self.links[0].since is not None else "would be"
            text = ", ".join(f"{one.partitions} partitions that it shares with broker {one.peer}" for one in self.links)
            return Condition("Demoted", False, Reason.BROKEN_LINK, f"{text} {verb} led by others{held}")
        if self.hold is not None:
            return Condition("Demoted", False, self.hold.reason, self.hold.message)
        if self.inactivity:
            return Condition("Demoted", False, Reason.NOT_ENFORCING, f"it would be demoted. {self.inactivity}")
        if self.restoration is not None and self.dwell_left is None:
            return Condition("Demoted", False, Reason.RESTORING_IN_WAVES, self.restoration.message)
        if self.dwell_left is not None:
            text = DESCRIPTIONS[Reason.DWELL_PENDING]
            if self.verdict.links:
                text = "A third replica leads what both ends of the broken link share after spec.demotion.dwellSeconds."
            if self.verdict.log_dirs:
                text = "What lies in its slow log directory is demoted after spec.demotion.dwellSeconds."
            return Condition("Demoted", False, Reason.DWELL_PENDING, text)
        if self.verdict.state is HealthState.DOWN:
            text = "Kafka fences the broker after its session timeout and moves its leaders: a demotion adds nothing."
            if self.verdict.reason is not Reason.UNREACHABLE:
                text = "Kafka has moved its leaders: there is nothing to demote."
            return Condition("Demoted", False, self.verdict.reason, text)
        return Condition("Demoted", False, Reason.UP_TO_DATE, "The broker is free to lead.")

    def _quarantined(self) -> Iterable[Condition]:
        order = self.quarantine_order
        if order is not None and (order.active or self.not_held is None):
            held = order.active and order.held_at is not None
            yield Condition("Quarantined", held, reason_named(order.reason), order.message)
        elif self.not_held is not None:
            yield Condition("Quarantined", False, self.not_held.reason, self.not_held.message)


def broker_reports(
    context: Context,
    plan: Plan,
    demoted: Mapping[int, DemotedBroker],
    would: tuple[int, ...],
    quarantines: QuarantineDecisions,
    last: tuple[BrokerReport, ...] = (),
) -> tuple[BrokerReport, ...]:
    """One report per judged broker, by id. ``demoted`` are the brokers that the policy keeps demoted,
    ``would`` those that it would demote if it acted.

    A report that equals the broker's ``last`` one is that object, and ``last`` itself is returned if all are, so that
    nothing is rendered twice.
    """
    snapshot, verdicts, policy = context.snapshot, context.verdicts, context.policy
    cluster = snapshot.cluster
    slow = {b for b, v in verdicts.items() if v.slow is not None or v.links}
    waited_for = Counter(
        b
        for p in (cluster.partitions if slow else ())
        for b in slow.intersection(p.isr)
        if p.leader != b and (verdicts[b].slow is not None or p.leader in verdicts[b].links)
    )
    pods = {b: pod for b, pod in (snapshot.pods or {}).items() if pod.name}
    pods = {**(snapshot.strimzi.pods if snapshot.strimzi is not None else {}), **pods}
    ended = {o.broker: o.until for o in snapshot.overrides if o.until is not None and not snapshot.in_force(o)}
    known, reports = {b.broker: b for b in last}, []
    for broker, verdict in sorted(verdicts.items()):
        registered = cluster.brokers.get(broker)
        flaps = snapshot.flaps.get(broker)
        now = BrokerReport(
            broker=broker,
            verdict=verdict,
            rack=registered.rack if registered is not None else None,
            registered=registered is not None,
            leaders=cluster.leader_counts[broker],
            preferred_leaders=cluster.preferred_counts[broker],
            replicas=cluster.replica_counts[broker],
            demoted=demoted.get(broker),
            hold=plan.decisions.hold_of(broker),
            inactivity=policy.inactivity if broker in would else "",
            dwell_left=plan.decisions.dwelling.get(broker),
            dwell_pending=verdict.state is HealthState.SICK and dwell_left(verdict, context) > 0,
            waited_for=waited_for[broker],
            flaps=flaps,
            stabilization_seconds=stabilization(flaps, policy),
            pod=pods[broker].name if broker in pods else "",
            hosts=tuple(snapshot.hosts.get(broker, ())),
            restoration=_restoration(broker, context, plan),
            drained=_drained(broker, context, plan, cluster.leader_counts[broker]),
            ended=ended.get(broker),
            quarantine_order=quarantines.orders.get(broker),
            not_held=quarantines.not_held.get(broker),
            log_dirs=_log_dirs(broker, context, plan),
            links=_links(broker, context, plan),
            held=broker in quarantines.held,
        )
        before = known.get(broker)
        reports.append(before if before is not None and before == now else now)
    unchanged = len(reports) == len(last) and all(map(is_, reports, last))
    return last if unchanged else tuple(reports)


def _restoration(broker: int, context: Context, plan: Plan) -> RestorationProgress | None:
    waves, decided = context.policy.promotion.waves, plan.decisions
    returning = (decided if context.policy.acts else context.snapshot.record).returning.get(broker)
    if returning is None:
        return None
    number, withheld, early = waves.number(returning.share), plan.withheld.get(broker, 0), plan.early.get(broker, 0)
    return RestorationProgress(returning, number, len(waves.steps), withheld, decided.waits.get(broker), early)


def _log_dirs(broker: int, context: Context, plan: Plan) -> tuple[LogDirReport, ...]:
    """The broker's demoted directories; of a policy that does not act those that it would demote."""
    decided = plan.decisions.log_dirs
    return tuple(
        LogDirReport(one, len(decided.partitions[log_dir]), context.policy.acts)
        for log_dir, one in decided.demoted.items()
        if log_dir.broker == broker
    )


def _links(broker: int, context: Context, plan: Plan) -> tuple[LinkReport, ...]:
    """The broker's broken links for which others lead; of a policy that does not act those for which they would."""
    decided, snapshot, links = plan.decisions.links, context.snapshot, context.verdicts[broker].links
    by_key, acts = snapshot.cluster.by_key, context.policy.acts
    found = []
    for link, one in decided.broken.items():
        peer, keys = link.peer(broker), decided.partitions[link]
        if peer is not None and keys:
            count = sum(baseline_leader(by_key[key], snapshot) in link for key in keys)
            found.append(LinkReport(peer, count, one.since if acts else None, peer in links))
    return tuple(found)


def _drained(broker: int, context: Context, plan: Plan, leads: int) -> Condition | None:
    """Whether a broker in maintenance may be stopped: it leads nothing, no partition returns to it, and those on it
    keep a leader and accept writes.
    """
    snapshot, policy = context.snapshot, context.policy
    if broker not in snapshot.maintenance:
        return None
    if not policy.acts:
        return Condition("Drained", False, Reason.NOT_ENFORCING, f"not drained: {policy.inactivity}")
    hold = plan.decisions.hold_of(broker)
    if broker not in plan.decisions.demoted and hold is not None:
        return Condition("Drained", False, hold.reason, hold.message)
    decided = plan.decisions.demoted
    here = [p for p in snapshot.cluster.held_by(broker) if _stays_with(broker, p)]
    coming = sum(m.leads_next == broker != m.leader for m in plan.moves) if broker in decided else 0
    if here or coming or broker not in decided:
        alone = stays_on(broker, decided, snapshot)
        if here and {p.name for p in here} <= {p.name for p in alone}:
            return Condition("Drained", False, Reason.NO_FAULT_TOLERANCE, stranded_message(broker, alone))
        first = sum(1 for p in here if p.replicas[0] == broker)
        text = f"leads {leads} partitions, and is first in the replica order of {first}"
        if coming:
            text += f"; {coming} move to it, as only sicker brokers could lead"
        stay = Counter(h.reason for h in plan.holds if _stays_with(broker, snapshot.cluster.by_key.get(h.key)))
        if stay:
            text += f"; blocked: {', '.join(f'{n} {r}' for r, n in sorted(stay.items()))}"
        if alone:
            text += f"; {stranded_message(broker, alone)}"
        reason = Reason.MOVES_BLOCKED if here and sum(stay.values()) >= len(here) else Reason.LEADERS_MOVING
        return Condition("Drained", False, reason, text)
    check = stop_check(snapshot.maintenance[broker], decided, snapshot)
    return Condition("Drained", check.safe, check.reason, check.message)


def _stays_with(broker: int, partition: Partition | None) -> bool:
    return partition is not None and broker in (partition.leader, partition.replicas[0])
