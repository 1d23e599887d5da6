"""Decide which broker's process to pause, because ``acks=all`` waits for a broker that leads nothing any more.

In: the snapshot with its margins and standing orders, verdicts, decisions. Out: the orders as they are to stand, and
why whoever holds ``acks=all`` back is left running. Called by the cycle after the decisions, once a turn. Fail safe:
any unknown or degraded input ends a quarantine, and none starts unless the cluster tolerates one more failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice

from bellwether.core.demotion.decisions import BrokerHold, Decisions
from bellwether.core.detection.findings import fresh
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, RENEW_SECONDS, QuarantineOrder
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.detection import AGENT_STALE_AFTER_SECONDS, QUARANTINE_AGENT
from bellwether.core.settings.policy import Policy, QuarantineMode
from bellwether.core.signals import Reading, Signal, SignalType

PAUSE_TIMEOUT_SECONDS = 30.0
"""A warden that has not paused its broker for so long after the order will not do so."""

RELEASE_SECONDS = 2 * EXPIRES_AFTER_SECONDS
"""So long after the last renewal a broker runs again, though nobody says so: the warden, or its keeper, saw to it."""

MAX_PARTITIONS_COMPARED = 200
"""So many partitions of a broker are compared with their leaders."""

ENDINGS = (
    Reason.DISK_RECOVERED,
    Reason.QUARANTINE_WITHDRAWN,
    Reason.QUARANTINE_LIMIT,
    Reason.NO_WARDEN,
    Reason.WARDEN_RELEASED,
    Reason.DISK_UNSEEN,
    Reason.MARGINS_UNKNOWN,
    Reason.OTHER_BROKER_UNWELL,
    Reason.ACTIVE_CONTROLLER,
    Reason.QUORUM_TOO_SMALL,
    Reason.ISR_TOO_SMALL,
    Reason.STILL_LEADS,
)
"""Whatever ends an order."""

_UNWELL = (HealthState.SICK, HealthState.DOWN, HealthState.SUSPECT)
_AT_REST = frozenset({Reason.DISK_RECOVERED, Reason.QUARANTINE_WITHDRAWN})


@dataclass(frozen=True)
class QuarantineDecisions:
    """The orders as they are to stand, those that ended lately included, and who is not paused, and why not.

    ``paused`` are brokers that their wardens say they have paused, by an order that stands or not.
    """

    orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    held: Mapping[int, BrokerHold] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FaultToleranceQuery:
    """What is to be read before a pause is weighed: min.insync.replicas of topics, and whether peers answer.

    ``followed`` are some partitions of each broker in question, with their leaders: whether it trails them.
    """

    topics: frozenset[str]
    peers: frozenset[int]
    followed: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)


def fault_tolerance_query(
    cluster: Cluster,
    record: UndoRecord,
    signals: tuple[Signal, ...],
    orders: Mapping[int, QuarantineOrder],
    policy: Policy,
) -> FaultToleranceQuery | None:
    """The margins that this turn needs; None where no pause is in question, so that nothing is asked for nothing."""
    if not policy.acts or policy.quarantine.mode is QuarantineMode.OFF:
        return None
    slow = {s.broker for s in signals if s.type == SignalType.STORAGE_LATENCY and s.reading is Reading.FAILING}
    watched = {s.broker for s in signals if s.type == QUARANTINE_AGENT}
    ordered = {b for b, c in orders.items() if c.active}
    about = ordered | (slow & watched & set(record.demoted))
    if not about:
        return None
    held = [p for p in cluster.partitions if not about.isdisjoint(p.replicas)]
    # Whoever is paused does not answer; of several in question each is another's peer.
    unasked = about if len(about) == 1 else ordered
    peers = {r for p in held for r in p.replicas} & cluster.live - unasked
    asked = {b for b in about if b not in orders or not orders[b].active}
    return FaultToleranceQuery(
        frozenset(p.topic for p in held), frozenset(peers), {b: _followed(cluster, b) for b in sorted(asked)}
    )


def _followed(cluster: Cluster, broker: int) -> Mapping[TopicPartition, int]:
    """Partitions in whose ISR a broker follows, as many as are worth a look, with their leaders."""
    found = ((p.name, p.leader) for p in cluster.held_by(broker) if broker in p.isr)
    return dict(
        islice(((name, leader) for name, leader in found if leader not in (None, broker)), MAX_PARTITIONS_COMPARED)
    )


def decide_quarantines(
    snapshot: Snapshot, policy: Policy, verdicts: Mapping[int, Verdict], decisions: Decisions
) -> QuarantineDecisions:
    """Which orders stand from now on. At most one does, and no new one while a former broker may still be paused."""
    scene = _QuarantineContext(snapshot, policy, verdicts, decisions)
    orders: dict[int, QuarantineOrder] = {}
    for broker, order in sorted(snapshot.quarantine_orders.items()):
        if order.active:
            orders[broker] = scene.gone_on_with(order)
        elif scene.remembered(order):
            orders[broker] = order
    held: dict[int, BrokerHold] = {}
    paused = scene.said_paused()
    if not policy.acts or policy.quarantine.mode is QuarantineMode.OFF:
        return QuarantineDecisions(orders, held, paused)
    for broker in scene.candidates(orders):
        hold = scene.refusal(broker, orders)
        if hold is None:
            orders[broker] = scene.order(broker, orders)
        else:
            held[broker] = hold
    return QuarantineDecisions(dict(sorted(orders.items())), held, paused)


@dataclass(frozen=True)
class _QuarantineContext:
    snapshot: Snapshot
    policy: Policy
    verdicts: Mapping[int, Verdict]
    decisions: Decisions

    def candidates(self, orders: Mapping[int, QuarantineOrder]) -> list[int]:
        """Demoted brokers that ``acks=all`` waits for, the worst first."""
        cluster = self.snapshot.cluster
        slow = [b for b in self.decisions.demoted if b in self.verdicts and self.verdicts[b].slow is not None]
        awaited = [b for b in slow if any(b in p.isr and p.leader != b for p in cluster.held_by(b))]
        waiting = [b for b in awaited if b not in orders or not orders[b].active]
        return sorted(waiting, key=lambda b: (-self.verdicts[b].severity, self.decisions.demoted[b].since, b))

    def order(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> QuarantineOrder:
        """A new order, with a number that no order and no warden has named before."""
        now, settings = self.snapshot.now, self.policy.quarantine
        known = [c.number for c in (*orders.values(), *self.snapshot.quarantine_orders.values())]
        said = [round(s.value) for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.value is not None]
        limit = f"for {settings.limit_seconds} s at most"
        return QuarantineOrder(
            broker=broker,
            epoch=self.snapshot.record.epoch,
            number=max([*known, *said, 0]) + 1,
            since=now,
            until=now + timedelta(seconds=settings.limit_seconds),
            renewed_at=now,
            reason=Reason.QUARANTINE_ORDERED,
            message=f"it leads nothing, and acks=all waits for its slow disk: to be paused {limit}",
        )

    def gone_on_with(self, order: QuarantineOrder) -> QuarantineOrder:
        """A standing order after this turn: renewed, or ended and why."""
        now = self.snapshot.now
        ending = self.ending(order)
        if ending is not None:
            return replace(order, ended_at=now, reason=ending.reason, message=ending.message)
        if order.obeyed_at is None and self._paused(order):
            text = "paused: acks=all does not wait for it while it is out of every ISR"
            order = replace(order, obeyed_at=now, reason=Reason.QUARANTINED, message=text)
        # A clock that was set back renews as well: the time only has to differ from the last one.
        if abs((now - order.renewed_at).total_seconds()) >= RENEW_SECONDS:
            order = replace(order, renewed_at=now)
        return order

    def remembered(self, order: QuarantineOrder) -> bool:
        """Whether an order that has ended still matters: its broker may be paused, or must be left in peace."""
        rests = timedelta(seconds=max(self.policy.quarantine.limit_seconds, RELEASE_SECONDS))
        ended = order.ended_at or order.since
        return order.broker in self.snapshot.cluster.named and self.snapshot.now - ended < rests

    def ending(self, order: QuarantineOrder) -> BrokerHold | None:
        """Why a standing order ends now."""
        broker, now, settings = order.broker, self.snapshot.now, self.policy.quarantine
        if not self.policy.acts or settings.mode is QuarantineMode.OFF:
            return BrokerHold(broker, Reason.QUARANTINE_WITHDRAWN, "the policy no longer quarantines")
        if broker not in self.decisions.demoted:
            return BrokerHold(broker, Reason.QUARANTINE_WITHDRAWN, "it is no longer kept from leading")
        # A limit that was lowered meanwhile is meant, and an order that was taken over may name any end.
        limit = timedelta(seconds=settings.limit_seconds)
        if now >= order.until or not timedelta() <= now - order.since < limit:
            text = f"paused for {settings.limit_seconds} s, the limit (spec.quarantine.limitSeconds)"
            return BrokerHold(broker, Reason.QUARANTINE_LIMIT, text)
        stopping = self._to_be_stopped(broker)
        if stopping:
            text = f"{stopping}: a paused process could not be shut down in order"
            return BrokerHold(broker, Reason.QUARANTINE_WITHDRAWN, text)
        return self._silence(order) or self._leads(broker) or self._disk(broker) or self.danger(broker)

    def refusal(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> BrokerHold | None:
        """Why a broker that holds ``acks=all`` back is not paused now; None where it may be."""
        now, settings, before = self.snapshot.now, self.policy.quarantine, orders.get(broker)
        other = self._another(orders)
        if other is not None:
            text = f"broker {other} is, or may still be, paused: one at a time"
            return BrokerHold(broker, Reason.ANOTHER_QUARANTINED, text)
        word = self._word(broker)
        if word is None:
            return BrokerHold(broker, Reason.NO_WARDEN, "no warden beside it reports: run bellwether warden there")
        if word.reading is not Reading.PASSING:
            return BrokerHold(broker, Reason.NO_WARDEN, f"its warden cannot pause it: {word.message}")
        if before is not None and before.reason not in _AT_REST:
            text = f"left in peace for {settings.limit_seconds} s: its last quarantine ended early ({before.message})"
            return BrokerHold(broker, Reason.QUARANTINE_RESTS, text)
        planned = self.snapshot.maintenance.get(broker)
        if planned is not None:
            return BrokerHold(broker, planned.reason, f"in maintenance: {planned.message}")
        leads = self._leads(broker)
        if leads is not None:
            return leads
        if now - self.decisions.demoted[broker].since < timedelta(seconds=settings.after_seconds):
            text = f"demoted for less than {settings.after_seconds} s (spec.quarantine.afterSeconds)"
            return BrokerHold(broker, Reason.QUARANTINE_DWELLS, text)
        return self._disk(broker) or self.danger(broker) or self._pace(broker)

    def _leads(self, broker: int) -> BrokerHold | None:
        """What it leads would be without a leader until its session has run out: such as a topic made just now."""
        if any(p.leader == broker for p in self.snapshot.cluster.held_by(broker)):
            return BrokerHold(broker, Reason.STILL_LEADS, DESCRIPTIONS[Reason.STILL_LEADS])
        return None

    def _to_be_stopped(self, broker: int) -> str:
        """Who is about to stop it, if anybody is. That its pod is not ready is what a pause does."""
        planned, pod = self.snapshot.maintenance.get(broker), (self.snapshot.pods or {}).get(broker)
        if planned is not None and (planned.asked or (pod is not None and pod.leaving)):
            return planned.message or "in maintenance"
        return ""

    def _pace(self, broker: int) -> BrokerHold | None:
        """Its disk may be slow and nobody wait for it: what Kafka leaves to the page cache costs nothing."""
        margins = self.snapshot.fault_tolerance
        if margins is not None and broker in margins.trailing:
            return None
        return BrokerHold(broker, Reason.KEEPS_PACE, DESCRIPTIONS[Reason.KEEPS_PACE])

    def danger(self, broker: int) -> BrokerHold | None:
        """What could not stand one more loss, were this broker out: brokers, partitions, the controllers' quorum."""
        margins = self.snapshot.fault_tolerance
        if margins is None or margins.problem or margins.quorum is None:
            why = margins.problem if margins is not None and margins.problem else "nobody has told"
            text = f"what the cluster could still lose is not known: {why}"
            return BrokerHold(broker, Reason.MARGINS_UNKNOWN, text)
        for other, what in self._unwell(broker):
            return BrokerHold(broker, Reason.OTHER_BROKER_UNWELL, f"broker {other} {what}")
        if margins.quorum.active == broker:
            # Nobody would be told of a change, nor could be asked, until the other voters have elected a new one.
            return BrokerHold(broker, Reason.ACTIVE_CONTROLLER, DESCRIPTIONS[Reason.ACTIVE_CONTROLLER])
        spares = margins.quorum.spares_without(broker)
        if spares is not None and spares < 1:
            text = (
                f"it votes among {len(margins.quorum.voters)} controllers, {len(margins.quorum.current)} of them in"
                " step: without it none could be lost"
            )
            return BrokerHold(broker, Reason.QUORUM_TOO_SMALL, text)
        return self._arithmetic(broker, margins.minimum_isr)

    def _arithmetic(self, broker: int, minimum: Mapping[str, int]) -> BrokerHold | None:
        spare, cluster = self.policy.quarantine.spare_isr_members, self.snapshot.cluster
        for p in cluster.held_by(broker):
            if p.reassigning:
                return BrokerHold(broker, Reason.ISR_TOO_SMALL, f"{p.name} is being reassigned")
            least = minimum.get(p.topic)
            if least is None:
                text = f"min.insync.replicas of topic {p.topic} is not known"
                return BrokerHold(broker, Reason.MARGINS_UNKNOWN, text)
            others = len(set(p.isr) & cluster.live - {broker})
            if others < least + spare:
                text = (
                    f"{p.name} would have {others} live ISR members without it; min.insync.replicas {least} and"
                    f" {spare} to spare (spec.quarantine.spareIsrMembers) are {least + spare}"
                )
                return BrokerHold(broker, Reason.ISR_TOO_SMALL, text)
        return None

    def _unwell(self, broker: int) -> Iterator[tuple[int, str]]:
        cluster, margins = self.snapshot.cluster, self.snapshot.fault_tolerance
        for other in sorted(cluster.named - {broker}):
            if other not in cluster.live:
                yield other, "is down or fenced"
            elif margins is not None and other in margins.silent:
                yield other, "does not answer"
            elif other in self.verdicts and self.verdicts[other].state in _UNWELL:
                yield other, f"is {self.verdicts[other].state}"
            elif other in self.snapshot.maintenance:
                yield other, f"is in maintenance: {self.snapshot.maintenance[other].message}"

    def _disk(self, broker: int) -> BrokerHold | None:
        """What the prober on its disk says, which goes on while the broker is paused: that alone shows recovery."""
        patience = self.policy.detection.storage.stale_after_seconds
        said = [s for s in self.snapshot.signals if (s.broker, s.type) == (broker, SignalType.STORAGE_LATENCY)]
        words = [s for s in said if fresh(s, patience)]
        if any(s.reading is Reading.FAILING for s in words):
            return None
        if words and len(words) == len(said) and all(s.reading is Reading.PASSING for s in words):
            return BrokerHold(broker, Reason.DISK_RECOVERED, "its disk is fast again")
        text = "no prober on its disk reports: recovery could not be seen"
        return BrokerHold(broker, Reason.DISK_UNSEEN, text)

    def _silence(self, order: QuarantineOrder) -> BrokerHold | None:
        """What the warden has to say against an order that it was given."""
        word, waited = self._word(order.broker), self.snapshot.now - order.since
        if word is None:
            return BrokerHold(order.broker, Reason.NO_WARDEN, "its warden has gone silent, and releases what it holds")
        if word.reading is Reading.UNKNOWN:
            return BrokerHold(order.broker, Reason.NO_WARDEN, f"its warden cannot pause it: {word.message}")
        if word.reading is Reading.PASSING and word.value == order.number:
            return BrokerHold(order.broker, Reason.WARDEN_RELEASED, f"its warden has released it: {word.message}")
        if not self._paused(order) and (
            order.obeyed_at is not None or waited > timedelta(seconds=PAUSE_TIMEOUT_SECONDS)
        ):
            return BrokerHold(order.broker, Reason.NO_WARDEN, "its warden does not do as ordered")
        return None

    def said_paused(self) -> frozenset[int]:
        """Brokers that wardens heard of lately say they have paused, by whatever order."""
        return frozenset(
            s.broker
            for s in self.snapshot.signals
            if (s.type, s.reading) == (QUARANTINE_AGENT, Reading.FAILING) and _lately(s)
        )

    def _paused(self, order: QuarantineOrder) -> bool:
        word = self._word(order.broker)
        return word is not None and word.reading is Reading.FAILING and word.value == order.number

    def _another(self, orders: Mapping[int, QuarantineOrder]) -> int | None:
        """A broker that is paused, is to be, or may still be."""
        for order in orders.values():
            if order.active:
                return order.broker
            word = self._word(order.broker)
            silent = word is None or word.reading is Reading.UNKNOWN
            unheard = silent or (word is not None and word.reading is Reading.PASSING and word.value != order.number)
            if unheard and self.snapshot.now - order.renewed_at < timedelta(seconds=RELEASE_SECONDS):
                return order.broker
        paused = (
            s.broker for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.reading is Reading.FAILING
        )
        return min(paused, default=None)

    def _word(self, broker: int) -> Signal | None:
        """What the warden beside a broker says, if it was heard of lately."""
        said = (s for s in self.snapshot.signals if (s.broker, s.type) == (broker, QUARANTINE_AGENT))
        return next((s for s in said if _lately(s)), None)


def _lately(word: Signal) -> bool:
    return word.age_seconds is not None and word.age_seconds <= AGENT_STALE_AFTER_SECONDS
