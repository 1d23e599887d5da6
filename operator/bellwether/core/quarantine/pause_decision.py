"""Decide which broker's process to pause, because ``acks=all`` waits for a broker that leads nothing any more.

In: the snapshot with the cluster's fault tolerance and the active orders, verdicts, decisions. Out: the new orders, and
why brokers that delay ``acks=all`` are not paused. Called once per reconcile, after the decisions. Fail safe: any
unknown or degraded input ends a quarantine; none starts unless the cluster tolerates one more failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, RENEW_SECONDS, QuarantineOrder
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import AGENT_STALE_AFTER_SECONDS, QUARANTINE_AGENT
from bellwether.core.settings.policy import Policy, QuarantineMode
from bellwether.core.signals import Reading, Signal, SignalType

PAUSE_TIMEOUT_SECONDS = 30.0
"""Seconds after the order in which the agent must have paused the broker; otherwise the order ends."""

RELEASE_SECONDS = 2 * EXPIRES_AFTER_SECONDS
"""Seconds after the last renewal in which a broker runs again without confirmation, by its agent or watchdog."""

MAX_PARTITIONS_COMPARED = 200
"""How many partitions of a broker are compared with their leaders."""

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
_WITHOUT_COOLDOWN = frozenset({Reason.QUARANTINE_ENDED, "DiskRecovered", "QuarantineWithdrawn"})  # two stored names


@dataclass(frozen=True)
class QuarantineDecisions:
    """The orders from now on, recently ended ones included, and why other brokers are not paused.

    ``paused`` are brokers whose agents report that they have paused them, by an active order or not.
    """

    orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    held: Mapping[int, BrokerHold] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FaultToleranceQuery:
    """What to read before a pause is decided: min.insync.replicas of topics, and whether peers answer.

    ``followed`` are some partitions of each broker in question, with their leaders, to find out whether it lags.
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
    """Inputs to read in this reconcile; None where no pause is in question, so that nothing is read needlessly."""
    if not policy.acts or policy.quarantine.mode is QuarantineMode.OFF:
        return None
    slow = {s.broker for s in signals if s.type == SignalType.STORAGE_LATENCY and s.reading is Reading.FAILING}
    watched = {s.broker for s in signals if s.type == QUARANTINE_AGENT}
    ordered = {b for b, c in orders.items() if c.active}
    about = ordered | (slow & watched & set(record.demoted))
    if not about:
        return None
    held = [p for p in cluster.partitions if not about.isdisjoint(p.replicas)]
    # A paused broker does not answer; of several in question each is another's peer.
    unasked = about if len(about) == 1 else ordered
    peers = {r for p in held for r in p.replicas} & cluster.live - unasked
    asked = {b for b in about if b not in orders or not orders[b].active}
    return FaultToleranceQuery(
        frozenset(p.topic for p in held), frozenset(peers), {b: _followed(cluster, b) for b in sorted(asked)}
    )


def _followed(cluster: Cluster, broker: int) -> Mapping[TopicPartition, int]:
    """Partitions in whose ISR a broker follows, up to the limit, with their leaders."""
    found = ((p.name, p.leader) for p in cluster.held_by(broker) if broker in p.isr)
    return dict(
        islice(((name, leader) for name, leader in found if leader not in (None, broker)), MAX_PARTITIONS_COMPARED)
    )


def decide_quarantines(context: Context, decisions: Decisions) -> QuarantineDecisions:
    """Orders from now on. At most one is active, and none starts while another broker may still be paused."""
    snapshot, policy = context.snapshot, context.policy
    checks = _Checks(snapshot, context.verdicts, policy, decisions)
    orders: dict[int, QuarantineOrder] = {}
    for broker, order in sorted(snapshot.quarantine_orders.items()):
        if order.active:
            orders[broker] = checks.renewed_or_ended(order)
        elif checks.remembered(order):
            orders[broker] = order
    held: dict[int, BrokerHold] = {}
    paused = checks.said_paused()
    if not policy.acts or policy.quarantine.mode is QuarantineMode.OFF:
        return QuarantineDecisions(orders, held, paused)
    for broker in checks.candidates(orders):
        hold = checks.refusal(broker, orders)
        if hold is None:
            orders[broker] = checks.order(broker, orders)
        else:
            held[broker] = hold
    return QuarantineDecisions(dict(sorted(orders.items())), held, paused)


@dataclass(frozen=True)
class _Checks(Context):
    decisions: Decisions

    def candidates(self, orders: Mapping[int, QuarantineOrder]) -> list[int]:
        """Demoted brokers that ``acks=all`` waits for, the worst first."""
        cluster = self.snapshot.cluster
        slow = [b for b in self.decisions.demoted if b in self.verdicts and self.verdicts[b].slow is not None]
        awaited = [b for b in slow if any(b in p.isr and p.leader != b for p in cluster.held_by(b))]
        waiting = [b for b in awaited if b not in orders or not orders[b].active]
        return sorted(waiting, key=lambda b: (-self.verdicts[b].severity, self.decisions.demoted[b].since, b))

    def order(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> QuarantineOrder:
        """A new order, with a number higher than any that an order or an agent has used."""
        now, settings = self.snapshot.now, self.policy.quarantine
        known = [c.number for c in (*orders.values(), *self.snapshot.quarantine_orders.values())]
        said = [round(s.value) for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.value is not None]
        limit = f"for at most {settings.limit_seconds} s"
        return QuarantineOrder(
            broker=broker,
            epoch=self.snapshot.record.epoch,
            number=max([*known, *said, 0]) + 1,
            since=now,
            until=now + timedelta(seconds=settings.limit_seconds),
            renewed_at=now,
            reason=Reason.QUARANTINE_PENDING,
            message=f"it leads nothing, and acks=all waits for its slow disk: ordered to pause {limit}",
        )

    def renewed_or_ended(self, order: QuarantineOrder) -> QuarantineOrder:
        """An active order after this reconcile: renewed, or ended with the reason."""
        now = self.snapshot.now
        ending = self.ending(order)
        if ending is not None:
            return replace(order, ended_at=now, reason=ending.reason, message=ending.message)
        if order.paused_at is None and self._paused(order):
            text = "paused; acks=all does not wait for it while it is out of every ISR"
            order = replace(order, paused_at=now, reason=Reason.PROCESS_PAUSED, message=text)
        # A clock that was set back renews as well: the time only has to differ from the last one.
        if abs((now - order.renewed_at).total_seconds()) >= RENEW_SECONDS:
            order = replace(order, renewed_at=now)
        return order

    def remembered(self, order: QuarantineOrder) -> bool:
        """Whether an ended order still matters: its broker may still be paused, or is in its cooldown."""
        ended = order.ended_at or order.since
        return order.broker in self.snapshot.cluster.named and self.snapshot.now - ended < self._cooldown

    def ending(self, order: QuarantineOrder) -> BrokerHold | None:
        """Why an active order ends now."""
        broker, now, settings = order.broker, self.snapshot.now, self.policy.quarantine
        if not self.policy.acts or settings.mode is QuarantineMode.OFF:
            return BrokerHold(
                broker,
                Reason.QUARANTINE_ENDED,
                "quarantine is off in the policy (spec.quarantine.mode), or the policy does not act",
            )
        if broker not in self.decisions.demoted:
            return BrokerHold(broker, Reason.QUARANTINE_ENDED, "it is no longer demoted")
        # A lowered limit applies to active orders, and an order from before a take-over may name any end.
        limit = timedelta(seconds=settings.limit_seconds)
        if now >= order.until or not timedelta() <= now - order.since < limit:
            text = f"paused for {settings.limit_seconds} s, the limit (spec.quarantine.limitSeconds)"
            return BrokerHold(broker, Reason.QUARANTINE_LIMIT, text)
        stopping = self._to_be_stopped(broker)
        if stopping:
            text = f"{stopping}: a paused process cannot shut down cleanly"
            return BrokerHold(broker, Reason.QUARANTINE_ENDED, text)
        return self._agent_failure(order) or self._leads(broker) or self._disk(broker) or self.danger(broker)

    def refusal(self, broker: int, orders: Mapping[int, QuarantineOrder]) -> BrokerHold | None:
        """Why a broker that delays ``acks=all`` is not paused now; None where it may be."""
        now, settings, before = self.snapshot.now, self.policy.quarantine, orders.get(broker)
        other = self._another(orders)
        if other is not None:
            text = f"broker {other} is or may be paused; only one broker is paused at a time"
            return BrokerHold(broker, Reason.ANOTHER_BROKER_UNHEALTHY, text)
        word = self._agent_signal(broker)
        if word is None:
            return BrokerHold(
                broker,
                Reason.AGENT_UNAVAILABLE,
                "no quarantine agent reports: run bellwether quarantine-agent next to the broker",
            )
        if word.reading is not Reading.PASSING:
            return BrokerHold(broker, Reason.AGENT_UNAVAILABLE, f"its quarantine agent cannot pause it: {word.message}")
        if before is not None and before.reason not in _WITHOUT_COOLDOWN:
            why = f"{settings.limit_seconds} s after the last quarantine, which ended early"
            return self._pending(broker, (before.ended_at or before.since) + self._cooldown, why, before.message)
        planned = self.snapshot.maintenance.get(broker)
        if planned is not None:
            return BrokerHold(broker, planned.reason, f"in maintenance: {planned.message}")
        leads = self._leads(broker)
        if leads is not None:
            return leads
        first = self.decisions.demoted[broker].since + timedelta(seconds=settings.after_seconds)
        if now < first:
            return self._pending(broker, first, f"{settings.after_seconds} s after its demotion")
        return self._disk(broker) or self.danger(broker) or self._pace(broker)

    @property
    def _cooldown(self) -> timedelta:
        return timedelta(seconds=max(self.policy.quarantine.limit_seconds, RELEASE_SECONDS))

    def _pending(self, broker: int, first: datetime, why: str, detail: str = "") -> BrokerHold:
        """It may be paused from a time on; what prevents that then as well, as far as that is known, comes first."""
        moment = f"not before {first.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
        lasting = self.danger(broker)
        if lasting is not None and lasting.reason in _LASTING:
            return replace(lasting, message=f"{lasting.message}; and {moment} ({why})")
        text = f"{moment} ({why}{f': {detail}' if detail else ''})"
        return BrokerHold(broker, Reason.QUARANTINE_PENDING, text)

    def _leads(self, broker: int) -> BrokerHold | None:
        """Partitions that it leads would be leaderless until its session times out, such as those of a new topic."""
        if any(p.leader == broker for p in self.snapshot.cluster.held_by(broker)):
            text = "it leads partitions; a pause would make them unavailable"
            return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        return None

    def _to_be_stopped(self, broker: int) -> str:
        """Why the broker is about to be stopped, if so. An unready pod does not count: the pause itself causes that."""
        planned, pod = self.snapshot.maintenance.get(broker), (self.snapshot.pods or {}).get(broker)
        if planned is not None and (planned.asked or (pod is not None and pod.leaving)):
            return planned.message or "in maintenance"
        return ""

    def _pace(self, broker: int) -> BrokerHold | None:
        """A slow disk may delay no one: writes to the page cache are not affected."""
        tolerance = self.snapshot.fault_tolerance
        if tolerance is not None and broker in tolerance.trailing:
            return None
        text = "its disk is slow, but its replicas are caught up: acks=all does not wait for it"
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
            text = "it is the active controller: a pause would leave the cluster without one"
            return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        spares = tolerance.quorum.spares_without(broker)
        if spares is not None and spares < 1:
            text = (
                f"it is one of {len(tolerance.quorum.voters)} controller voters, {len(tolerance.quorum.current)} of"
                " them in sync: without it the quorum tolerates no further failure"
            )
            return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, text)
        return self._arithmetic(broker, tolerance.minimum_isr)

    def _arithmetic(self, broker: int, minimum: Mapping[str, int]) -> BrokerHold | None:
        spare, cluster = self.policy.quarantine.spare_isr_members, self.snapshot.cluster
        for p in cluster.held_by(broker):
            if p.reassigning:
                return BrokerHold(broker, Reason.NO_FAULT_TOLERANCE, f"{p.name} is being reassigned")
            least = minimum.get(p.topic)
            if least is None:
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

    def _disk(self, broker: int) -> BrokerHold | None:
        """Signal of the prober on the broker's disk, which runs during the pause: only it can show recovery."""
        patience = self.policy.detection.storage.stale_after_seconds
        said = [s for s in self.snapshot.signals if (s.broker, s.type) == (broker, SignalType.STORAGE_LATENCY)]
        words = [s for s in said if fresh(s, patience)]
        if any(s.reading is Reading.FAILING for s in words):
            return None
        if words and len(words) == len(said) and all(s.reading is Reading.PASSING for s in words):
            return BrokerHold(broker, Reason.QUARANTINE_ENDED, "its disk is fast again")
        text = "no storage probe reports on its disk, so its recovery would not be detected"
        return BrokerHold(broker, Reason.NO_EVIDENCE, text)

    def _agent_failure(self, order: QuarantineOrder) -> BrokerHold | None:
        """Why the agent does not carry out its order, by its own signal."""
        word, waited = self._agent_signal(order.broker), self.snapshot.now - order.since
        if word is None:
            return BrokerHold(
                order.broker,
                Reason.AGENT_UNAVAILABLE,
                "its quarantine agent does not report any more; it releases the broker when the order expires",
            )
        if word.reading is Reading.UNKNOWN:
            return BrokerHold(
                order.broker, Reason.AGENT_UNAVAILABLE, f"its quarantine agent cannot pause it: {word.message}"
            )
        if word.reading is Reading.PASSING and word.value == order.number:
            return BrokerHold(
                order.broker, Reason.AGENT_UNAVAILABLE, f"its quarantine agent has released it: {word.message}"
            )
        if not self._paused(order) and (
            order.paused_at is not None or waited > timedelta(seconds=PAUSE_TIMEOUT_SECONDS)
        ):
            return BrokerHold(
                order.broker,
                Reason.AGENT_UNAVAILABLE,
                f"its quarantine agent has not paused it within {PAUSE_TIMEOUT_SECONDS:.0f} s",
            )
        return None

    def said_paused(self) -> frozenset[int]:
        """Brokers whose agents report, with a fresh signal, that they have paused them, by whatever order."""
        return frozenset(
            s.broker
            for s in self.snapshot.signals
            if (s.type, s.reading) == (QUARANTINE_AGENT, Reading.FAILING) and _agent_reports(s)
        )

    def _paused(self, order: QuarantineOrder) -> bool:
        word = self._agent_signal(order.broker)
        return word is not None and word.reading is Reading.FAILING and word.value == order.number

    def _another(self, orders: Mapping[int, QuarantineOrder]) -> int | None:
        """A broker that is paused, is to be, or may still be."""
        for order in orders.values():
            if order.active:
                return order.broker
            word = self._agent_signal(order.broker)
            silent = word is None or word.reading is Reading.UNKNOWN
            unheard = silent or (word is not None and word.reading is Reading.PASSING and word.value != order.number)
            if unheard and self.snapshot.now - order.renewed_at < timedelta(seconds=RELEASE_SECONDS):
                return order.broker
        paused = (
            s.broker for s in self.snapshot.signals if s.type == QUARANTINE_AGENT and s.reading is Reading.FAILING
        )
        return min(paused, default=None)

    def _agent_signal(self, broker: int) -> Signal | None:
        """The fresh signal of a broker's quarantine agent, if any."""
        said = (s for s in self.snapshot.signals if (s.broker, s.type) == (broker, QUARANTINE_AGENT))
        return next((s for s in said if _agent_reports(s)), None)


def _agent_reports(word: Signal) -> bool:
    return word.age_seconds is not None and word.age_seconds <= AGENT_STALE_AFTER_SECONDS
