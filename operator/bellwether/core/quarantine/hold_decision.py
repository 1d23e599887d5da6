"""Decide which broker to hold in a controlled shutdown, because ``acks=all`` waits for its disk, or while it freezes.

In: the snapshot with the cluster's fault tolerance and the active orders, verdicts, demoted brokers and those that
``demotion.cure_choice`` would hold. Out: the new orders, and why brokers that delay ``acks=all`` are not held. Called
once per reconcile, after the decisions. Fail safe: any unknown or degraded input ends a quarantine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.history.flap_damping import stabilization
from bellwether.core.model.history.known_good import NOT_YET_GOOD, KnownGood, KnownGoods
from bellwether.core.model.quarantine_order import RELEASE_AFTER, RENEW_SECONDS, QuarantineOrder
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import AGENT_STALE_AFTER_SECONDS
from bellwether.core.settings.harm import STALLED_SECONDS
from bellwether.core.settings.policy import QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal, SignalType

HOLD_TIMEOUT_SECONDS = 30.0
"""Seconds after the order in which the agent must hold the broker; otherwise the order ends."""

ENDINGS = (
    Reason.QUARANTINE_ENDED,
    Reason.QUARANTINE_LIMIT,
    Reason.AGENT_UNAVAILABLE,
    Reason.NO_EVIDENCE,
    Reason.ANOTHER_BROKER_UNHEALTHY,
    Reason.NO_FAULT_TOLERANCE,
)
"""Reasons that end an order."""

_NOT_HEALTHY = (HealthState.SICK, HealthState.DOWN, HealthState.SUSPECT)
_LASTING = (Reason.ANOTHER_BROKER_UNHEALTHY, Reason.NO_FAULT_TOLERANCE)


@dataclass(frozen=True)
class QuarantineDecisions:
    """The orders from now on, recently ended ones included, and why other brokers are not held.

    ``held`` are brokers whose agents report that they hold them, by an active order or not.
    """

    orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    not_held: Mapping[int, BrokerHold] = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    known_good: KnownGoods = field(default_factory=dict, compare=False)
    """How long the disks of brokers with an active order are known to be good."""


_ABOUT_HOLDING = (SignalType.STORAGE_LATENCY, QUARANTINE_AGENT)


def decide_quarantines(
    context: Context, demoted: Mapping[int, DemotedBroker], to_hold: Collection[int] = ()
) -> QuarantineDecisions:
    """Orders from now on. At most one is active, and none starts while another broker may still be held.

    ``to_hold`` are brokers that are not demoted, because holding them is the better cure.
    """
    snapshot, policy = context.snapshot, context.policy
    checks = Checks(snapshot, context.verdicts, policy, demoted)
    orders: dict[int, QuarantineOrder] = {}
    for broker, order in sorted(snapshot.quarantine_orders.items()):
        if order.active:
            orders[broker] = checks.renewed_or_ended(order)
        elif checks.remembered(order):
            orders[broker] = order
    not_held, held = dict[int, BrokerHold](), checks.said_held()
    known_good: KnownGoods = {b: checks.known_good(b) for b, o in orders.items() if o.active}
    if not policy.acts or policy.quarantine.mode is QuarantineMode.OFF:
        return QuarantineDecisions(orders, not_held, held, known_good)
    for broker in checks.candidates(orders, to_hold):
        hold = checks.refusal(broker, orders)
        if hold is None:
            orders[broker] = checks.order(broker, orders)
        else:
            not_held[broker] = hold
    return QuarantineDecisions(dict(sorted(orders.items())), not_held, held, known_good)


@dataclass(frozen=True)
class Checks(Context):
    """Whether a broker with a slow disk delays ``acks=all``, and what forbids to hold it."""

    demoted: Mapping[int, DemotedBroker]

    def candidates(self, orders: Mapping[int, QuarantineOrder], to_hold: Collection[int]) -> list[int]:
        """Slow brokers that are demoted or to be held, and that ``acks=all`` may wait for, the worst first; and those
        that are down with an append that does not end.
        """
        cluster = self.snapshot.cluster
        slow = [b for b in self.demoted if b in self.verdicts and self.verdicts[b].slow is not None]
        slow += [b for b in self.demoted if self.freezes(b)]
        # Requests that one with a stalled disk took wait for their clients' time limits, and it comes back to its ISRs
        # at each moment in which the disk answers.
        known = cluster.named.difference(self.snapshot.maintenance)
        down = {b for b, v in self.verdicts.items() if v.state is HealthState.DOWN and b in known and self.stalled(b)}
        awaited = {b for b in slow if any(cluster.followed_in_sync_by(b))} | set(to_hold) | down
        waiting = [b for b in awaited if b not in orders or not orders[b].active]
        since = {b: (self.demoted.get(b) or self.verdicts[b]).since for b in waiting}
        return sorted(waiting, key=lambda b: (-self.verdicts[b].severity, since[b], b))

    def stalled(self, broker: int) -> bool:
        """Whether an append to one of its log directories has not ended for so long that it may never end."""
        return self.append_seconds(broker) >= STALLED_SECONDS

    def freezes(self, broker: int) -> bool:
        """Whether it freezes again and again."""
        return broker in self.verdicts and self.verdicts[broker].reason is Reason.FREEZING

    def append_seconds(self, broker: int) -> float:
        """What an append takes to the slowest of its failing log directories; 0 if none fails."""
        failing = [s for s in self._disk_signals(broker) if s.reading is Reading.FAILING]
        return max((s.latency_seconds or 0.0 for s in failing), default=0.0)

    def delays_acks_all(self, broker: int) -> bool | None:
        """Whether ``acks=all`` waits for it as a follower; None if that is unknown."""
        tolerance = self.snapshot.fault_tolerance
        if self.stalled(broker) or self.freezes(broker) or (tolerance is not None and broker in tolerance.trailing):
            return True
        return False if tolerance is not None and broker in tolerance.keeping_up else None

    def order(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> QuarantineOrder:
        """A new order, with a number higher than any that an order or an agent has used."""
        now, settings = self.snapshot.now, self.policy.quarantine
        known = [c.number for c in (*orders.values(), *self.snapshot.quarantine_orders.values())]
        said = [round(s.value) for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.value is not None]
        freezes, limit = self.freezes(broker), f"for at most {settings.limit_seconds} s"
        what = "it while it freezes" if freezes else "its slow disk"
        return QuarantineOrder(
            broker=broker,
            epoch=self.snapshot.record.epoch,
            number=max([*known, *said, 0]) + 1,
            since=now,
            until=now + timedelta(seconds=settings.limit_seconds),
            renewed_at=now,
            reason=Reason.QUARANTINE_PENDING,
            message=f"acks=all waits for {what}: ordered into a held controlled shutdown {limit}",
            freezes=freezes,
        )

    def renewed_or_ended(self, order: QuarantineOrder) -> QuarantineOrder:
        """An active order after this reconcile: renewed, or ended with the reason."""
        now = self.snapshot.now
        if (ending := self.ending(order)) is not None:
            return replace(order, ended_at=now, reason=ending.reason, message=ending.message)
        if order.held_at is not None or self._held(order):
            since = order.held_at or now
            order = replace(order, held_at=since, reason=Reason.BROKER_HELD, message=self._effect(order.broker))
        # A clock that was set back renews as well: the time only has to differ from the last one.
        if abs((now - order.renewed_at).total_seconds()) >= RENEW_SECONDS:
            order = replace(order, renewed_at=now)
        return order

    def _effect(self, broker: int) -> str:
        """What holding a broker has reached by now."""
        left = sum(broker in p.isr for p in self.snapshot.cluster.held_by(broker))
        if left:
            return f"held: it is in {left} ISRs until Kafka has fenced it (broker.session.timeout.ms)"
        return "held in a controlled shutdown: it is out of every ISR, and no client waits for it"

    def remembered(self, order: QuarantineOrder) -> bool:
        """Whether an ended order still matters: its broker may still be held, or is in its cooldown."""
        ended = order.ended_at or order.since
        return order.broker in self.snapshot.cluster.named and self.snapshot.now - ended < self._cooldown

    def ending(self, order: QuarantineOrder) -> BrokerHold | None:
        """Why an active order ends now."""
        broker, now, settings = order.broker, self.snapshot.now, self.policy.quarantine
        if not self.policy.acts or settings.mode is QuarantineMode.OFF:
            text = "quarantine is off in the policy (spec.quarantine.mode), or the policy does not act"
            return BrokerHold(broker, Reason.QUARANTINE_ENDED, text)
        if (allowed := self._allowed_to_lead(broker)) is not None:
            return allowed
        # A lowered limit applies to active orders, and an order from before a take-over may name any end.
        limit = timedelta(seconds=settings.limit_seconds)
        if now >= order.until or not timedelta() <= now - order.since < limit:
            text = f"held for {settings.limit_seconds} s, the limit (spec.quarantine.limitSeconds)"
            return BrokerHold(broker, Reason.QUARANTINE_LIMIT, text)
        if stopping := self._to_be_stopped(broker):
            return BrokerHold(broker, Reason.QUARANTINE_ENDED, f"{stopping}: a held process cannot end")
        about = [s for s in self.snapshot.signals if s.broker == broker and s.type in _ABOUT_HOLDING]
        if any(s.age_seconds is None for s in about):
            # This process has not seen their sources renew a Lease yet; the limit bounds the wait.
            return self.danger(broker)
        wait = stabilization(self.snapshot.flaps.get(broker), self.policy)
        over = self._disk(broker, 0 if order.freezes else wait)
        if order.freezes and over is not None:
            # A held process shows nothing. Its start ends what is its own, such as memory that is used up.
            held = (now - order.since).total_seconds()
            text = f"held for {wait} s (spec.promotion.stabilizationSeconds); its start shows whether it still freezes"
            over = BrokerHold(broker, Reason.QUARANTINE_ENDED, text) if held >= wait else None
        return self._agent_failure(order) or over or self.danger(broker)

    def refusal(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> BrokerHold | None:
        """Why a broker that delays ``acks=all`` is not held now; None where it may be."""
        settings, before = self.policy.quarantine, orders.get(broker)
        if (other := self._another(orders)) is not None:
            text = f"broker {other} is or may be held; only one broker is held at a time"
            return BrokerHold(broker, Reason.ANOTHER_BROKER_UNHEALTHY, text)
        word = self._agent_signal(broker)
        if word is None:
            text = "no quarantine agent reports: run bellwether quarantine-agent next to the broker"
            return BrokerHold(broker, Reason.AGENT_UNAVAILABLE, text)
        if word.reading is not Reading.PASSING:
            return BrokerHold(broker, Reason.AGENT_UNAVAILABLE, f"its quarantine agent cannot hold it: {word.message}")
        if before is not None and before.reason != Reason.QUARANTINE_ENDED:
            why = f"{settings.limit_seconds} s after the last quarantine, which ended early"
            return self._pending(broker, (before.ended_at or before.since) + self._cooldown, why, before.message)
        if (planned := self.snapshot.maintenance.get(broker)) is not None:
            return BrokerHold(broker, planned.reason, f"in maintenance: {planned.message}")
        disk = None if self.freezes(broker) else self._disk(broker, 0)
        return self._allowed_to_lead(broker) or disk or self.danger(broker) or self._pace(broker)

    def _allowed_to_lead(self, broker: int) -> BrokerHold | None:
        if not self.snapshot.promoted_by_override(broker):
            return None
        text = "an override lets it lead (spec.override.state is Promoted)"
        return BrokerHold(broker, Reason.QUARANTINE_ENDED, text)

    @property
    def _cooldown(self) -> timedelta:
        return max(timedelta(seconds=self.policy.quarantine.limit_seconds), RELEASE_AFTER)

    def _pending(self, broker: int, first: datetime, why: str, detail: str = "") -> BrokerHold:
        """It may be held from a time on; what prevents that then as well, as far as that is known, comes first."""
        moment = f"not before {first.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
        lasting = self.danger(broker)
        if lasting is not None and lasting.reason in _LASTING:
            return replace(lasting, message=f"{lasting.message}; and {moment} ({why})")
        text = f"{moment} ({why}{f': {detail}' if detail else ''})"
        return BrokerHold(broker, Reason.QUARANTINE_PENDING, text)

    def _to_be_stopped(self, broker: int) -> str:
        """Why the broker is about to be stopped, if so. An unready pod does not count: the hold itself causes that."""
        planned, pod = self.snapshot.maintenance.get(broker), (self.snapshot.pods or {}).get(broker)
        if planned is not None and (planned.asked or (pod is not None and pod.leaving)):
            return planned.message or "in maintenance"
        return ""

    def _pace(self, broker: int) -> BrokerHold | None:
        """A slow disk may delay no one: a follower that appends slowly, and keeps up."""
        if delays := self.delays_acks_all(broker):
            return None
        if delays is None:
            text = "whether acks=all waits for it is unknown: its log ends could not be compared with its leaders'"
            return BrokerHold(broker, Reason.NO_EVIDENCE, text)
        text = "its disk is slow, but it keeps up with its leaders: acks=all does not wait for it"
        return BrokerHold(broker, Reason.NOT_BLOCKING_ACKS, text)

    def danger(self, broker: int) -> BrokerHold | None:
        """What would not tolerate one more failure without this broker: brokers, partitions, the controller quorum."""
        tolerance = self.snapshot.fault_tolerance
        if tolerance is None or tolerance.problem or tolerance.quorum is None:
            why = tolerance.problem if tolerance is not None and tolerance.problem else "no data"
            text = f"the fault tolerance of the cluster is not known: {why}"
            return BrokerHold(broker, Reason.NO_EVIDENCE, text)
        for other, what in self._not_healthy(broker):
            return BrokerHold(broker, Reason.ANOTHER_BROKER_UNHEALTHY, f"broker {other} {what}")
        if tolerance.quorum.active == broker:
            # No metadata change would be possible until the other voters have elected a new controller.
            text = "it is the active controller: without it the cluster has none until another is elected"
            return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        wanted = self.policy.quarantine.spare_isr_members
        if (shortage := tolerance.quorum.shortage_without(broker, wanted)) is not None:
            text = f"{shortage} plus {wanted} (spec.quarantine.spareIsrMembers)"
            return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        return self._arithmetic(broker, tolerance.minimum_isr)

    def _arithmetic(self, broker: int, minimum: Mapping[str, int]) -> BrokerHold | None:
        spare, cluster = self.policy.quarantine.spare_isr_members, self.snapshot.cluster
        for p in cluster.held_by(broker):
            if p.reassigning:
                return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, f"{p.name} is being reassigned")
            if (least := minimum.get(p.topic)) is None:
                text = f"min.insync.replicas of topic {p.topic} is not known"
                return BrokerHold(broker, Reason.NO_EVIDENCE, text)
            others = len(set(p.isr) & cluster.live - {broker})
            if others < least + spare:
                text = (
                    f"{p.name} would have {others} live ISR members without it; min.insync.replicas {least} plus"
                    f" {spare} (spec.quarantine.spareIsrMembers) requires {least + spare}"
                )
                return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        return None

    def _not_healthy(self, broker: int) -> Iterator[tuple[int, str]]:
        cluster, tolerance = self.snapshot.cluster, self.snapshot.fault_tolerance
        for other in sorted(cluster.named - {broker}):
            verdict, repair = self.verdicts.get(other), f"repair broker {other} first"
            if other not in cluster.live:
                yield other, f"is down or fenced: {repair}"
            elif tolerance is not None and other in tolerance.silent:
                yield other, f"does not answer: {repair}"
            elif verdict is not None and verdict.state in _NOT_HEALTHY:
                yield other, f"is {verdict.state} ({verdict.reason}): {repair}"
            elif other in self.snapshot.maintenance:
                yield other, f"is in maintenance: {self.snapshot.maintenance[other].message}"

    def _disk(self, broker: int, wait_seconds: int) -> BrokerHold | None:
        """Signal of the prober on the broker's disk, which runs meanwhile: only it can show recovery.

        A held one is released once it has been fast for as long as a demoted one must be well, longer each time: a
        device that is too slow for the bytes that clients write is fast as soon as its broker is held.
        """
        patience = self.policy.detection.storage_latency.stale_after_seconds
        said = self._disk_signals(broker)
        words = [s for s in said if fresh(s, patience)]
        if any(s.reading is Reading.FAILING for s in words):
            return None
        if words and len(words) == len(said) and all(s.reading is Reading.PASSING for s in words):
            waits = self.known_good(broker).seconds < wait_seconds
            return None if waits else BrokerHold(broker, Reason.QUARANTINE_ENDED, "its disk is fast again")
        text = "no storage probe reports on its disk, so its recovery would not be detected"
        return BrokerHold(broker, Reason.NO_EVIDENCE, text)

    def known_good(self, broker: int) -> KnownGood:
        """How long its disk is known to be good."""
        said, patience = self._disk_signals(broker), self.policy.detection.storage_latency.stale_after_seconds
        known = bool(said) and all(fresh(s, patience) for s in said)
        good = False if any(s.reading is Reading.FAILING for s in said) else known or None
        passing = {(str(s.type), s.source): s.since for s in said if s.reading is Reading.PASSING}
        wait = stabilization(self.snapshot.flaps.get(broker), self.policy)
        return self.snapshot.known_good.get(broker, NOT_YET_GOOD).after(good, self.snapshot.now, wait, passing)

    def _disk_signals(self, broker: int) -> list[Signal]:
        return [s for s in self.snapshot.signals if (s.broker, s.type) == (broker, SignalType.STORAGE_LATENCY)]

    def _agent_failure(self, order: QuarantineOrder) -> BrokerHold | None:
        """Why the agent does not carry out its order, by its own signal."""
        word, waited = self._agent_signal(order.broker), self.snapshot.now - order.since
        why = ""
        if word is None:
            why = "its quarantine agent does not report any more; it releases the broker when the order expires"
        elif word.reading is Reading.UNKNOWN:
            why = f"its quarantine agent cannot hold it: {word.message}"
        elif word.reading is Reading.PASSING and word.value == order.number:
            why = f"its quarantine agent has released it: {word.message}"
        elif not self._held(order) and (order.held_at is not None or waited > timedelta(seconds=HOLD_TIMEOUT_SECONDS)):
            why = f"its quarantine agent has not held it within {HOLD_TIMEOUT_SECONDS:.0f} s"
        return BrokerHold(order.broker, Reason.AGENT_UNAVAILABLE, why) if why else None

    def said_held(self) -> frozenset[int]:
        """Brokers whose agents report, with a fresh signal, that they hold them, by whatever order."""
        return frozenset(
            s.broker
            for s in self.snapshot.signals
            if (s.type, s.reading) == (QUARANTINE_AGENT, Reading.FAILING) and _agent_reports(s)
        )

    def _held(self, order: QuarantineOrder) -> bool:
        word = self._agent_signal(order.broker)
        return word is not None and word.reading is Reading.FAILING and word.value == order.number

    def _another(self, orders: Mapping[int, QuarantineOrder]) -> int | None:
        """A broker that is held, is ordered to be held, or may still be held."""
        for order in orders.values():
            if order.active:
                return order.broker
            word = self._agent_signal(order.broker)
            silent = word is None or word.reading is Reading.UNKNOWN
            unheard = silent or (word is not None and word.reading is Reading.PASSING and word.value != order.number)
            if unheard and self.snapshot.may_be_held(order.broker):
                return order.broker
        held = (s.broker for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.reading is Reading.FAILING)
        return min(held, default=None)

    def _agent_signal(self, broker: int) -> Signal | None:
        """The fresh signal of a broker's quarantine agent, if any."""
        said = (s for s in self.snapshot.signals if (s.broker, s.type) == (broker, QUARANTINE_AGENT))
        return next((s for s in said if _agent_reports(s)), None)


def _agent_reports(word: Signal) -> bool:
    return word.age_seconds is not None and word.age_seconds <= AGENT_STALE_AFTER_SECONDS
