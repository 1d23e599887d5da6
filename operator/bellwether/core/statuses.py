"""Report: what a turn saw, thinks, did and holds back, as values. The same news makes the same report.

Called last in every turn. The Kubernetes adapter writes it as status, the handlers turn it into events and metrics, the
command line prints it; the words in it were born in the judgements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bellwether.core.baselines import Demoted
from bellwether.core.capacities import as_of, without_loads
from bellwether.core.clusters import Partition
from bellwether.core.coexistence import waiting_for_others
from bellwether.core.confinements import Confinement
from bellwether.core.demotions import BrokerHold, ripe
from bellwether.core.flapping import Flaps, stabilization
from bellwether.core.guards import Hold
from bellwether.core.imbalances import Balance
from bellwether.core.plans import Plan
from bellwether.core.policies import Mode, Policy
from bellwether.core.problems import Problem
from bellwether.core.quarantine import Quarantines
from bellwether.core.rackreports import words
from bellwether.core.reasons import SENTENCES, Reason, known
from bellwether.core.rebalances import Progress
from bellwether.core.recovery import Note
from bellwether.core.returns import Way
from bellwether.core.risks import Ward, shortcomings
from bellwether.core.snapshots import Snapshot
from bellwether.core.strimzi import Strimzi
from bellwether.core.transitions import Standing
from bellwether.core.verdicts import Verdict
from bellwether.core.whereabouts import whereabouts

SAMPLE_SIZE = 20
"""How many held partitions a status names; the rest is a number."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended before its plan did."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Deeds:
    """What a turn did in Kafka. ``touched`` names partitions whose replica set changed around our reorder."""

    reordered: int = 0
    elected: int = 0
    holds: tuple[Hold, ...] = ()
    touched: tuple[Hold, ...] = ()
    stopped: Stop | None = None

    @property
    def changed(self) -> bool:
        """Whether Kafka has taken anything on, shown by now or not, so that the next turn should look at once."""
        accepted = any(h.reason is Reason.NOT_APPLIED for h in self.holds)
        return bool(self.reordered or self.elected or accepted)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition without its times, which whoever writes it keeps (Kubernetes API conventions)."""

    type: str
    status: bool | None
    reason: Reason
    message: str


def of_type(conditions: Iterable[Condition], type_: str) -> Condition:
    """The condition of that type. Raises KeyError where there is none."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    raise KeyError(type_)


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """What is to be said of one broker."""

    broker: int
    verdict: Verdict
    rack: str | None
    registered: bool
    leaders: int
    preferred_leaders: int
    replicas: int
    demoted: Demoted | None
    hold: BrokerHold | None
    dwelling: bool = False
    unripe: bool = False
    """Sick for less than the dwell: other brokers' signals may still say that the cause is elsewhere."""
    waited_for: int = 0
    flaps: Flaps | None = None
    stabilization_seconds: int = 0
    pod: str = ""
    """The name of its pod, where that is known."""
    way: Way | None = None
    """How far its way back has come, while it gets its leaders back in waves."""
    drained: Condition | None = None
    """Whether it may be stopped; None unless it is in maintenance."""
    ended: datetime | None = None
    """When the override ended that still stands in its object."""
    confinement: Confinement | None = None
    """The order to pause it that stands, or that ended lately."""
    unpaused: BrokerHold | None = None
    """Why it is not paused though ``acks=all`` waits for it; None where no policy asks for that."""
    paused: bool = False
    """Whether the warden beside it says that it has paused it, by whatever order."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``Healthy``, ``Demoted`` and ``HoldsBackISR``, with the reasons that the judgement gave.

        ``Drained`` while it is in maintenance, ``Overridden`` while an override stands that has ended, ``Quarantined``
        where it is paused, was lately, or would be but for a reason.
        """
        standing = self.verdict.standing
        healthy = None if standing is Standing.UNKNOWN else standing is Standing.HEALTHY
        return (
            Condition("Healthy", healthy, self.verdict.reason, self.verdict.message),
            self._demoted(),
            self._holds_back(),
            *([self.drained] if self.drained is not None else []),
            *self._ended(),
            *self._quarantined(),
        )

    def condition(self, type_: str) -> Condition:
        """The condition of that type. Raises KeyError where there is none."""
        return of_type(self.conditions, type_)

    def _ended(self) -> Iterable[Condition]:
        if self.ended is not None:
            moment = self.ended.astimezone(UTC)
            text = f"spec.override ended at {moment:%Y-%m-%dT%H:%M:%SZ} and has no effect: take it away"
            yield Condition("Overridden", False, Reason.OVERRIDE_ENDED, text)

    def _demoted(self) -> Condition:
        if self.demoted is not None:
            reason, text = known(self.demoted.reason), self.demoted.message
            if self.hold is not None:
                text = f"{text}; {self.hold.message}"
            return Condition("Demoted", True, reason, text)
        if self.hold is not None:
            return Condition("Demoted", False, self.hold.reason, self.hold.message)
        if self.way is not None and not self.dwelling:
            return Condition("Demoted", False, Reason.RETURNING_IN_WAVES, self.way.message)
        reason = Reason.DWELLING if self.dwelling else Reason.LEADING_ALLOWED
        return Condition("Demoted", False, reason, SENTENCES[reason])

    def _quarantined(self) -> Iterable[Condition]:
        order = self.confinement
        if order is not None and (order.stands or self.unpaused is None):
            paused = order.stands and order.obeyed_at is not None
            yield Condition("Quarantined", paused, known(order.reason), order.message)
        elif self.unpaused is not None:
            yield Condition("Quarantined", False, self.unpaused.reason, self.unpaused.message)

    def _holds_back(self) -> Condition:
        """Whether ``acks=all`` waits for this broker: a slow follower in an ISR, whether it leads or not."""
        slow = self.verdict.slow
        if slow is None:
            return Condition("HoldsBackISR", False, Reason.FOLLOWING_FAST, SENTENCES[Reason.FOLLOWING_FAST])
        if not self.waited_for:
            return Condition("HoldsBackISR", False, Reason.AWAITED_BY_NOBODY, SENTENCES[Reason.AWAITED_BY_NOBODY])
        text = f"it follows slowly and is in the ISR of partitions that others lead: acks=all waits for it ({slow})"
        return Condition("HoldsBackISR", True, slow, text)


@dataclass(frozen=True)
class Report:
    """What a turn has to say of a policy."""

    now: datetime
    cluster_id: str
    epoch: int
    conditions: tuple[Condition, ...]
    brokers: tuple[BrokerReport, ...]
    standings: Mapping[Standing, int]
    partitions: int
    leaderless: int
    displaced: int
    leaders_out_of_place: int
    plan: Plan
    held: tuple[Hold, ...]
    would_demote: tuple[int, ...]
    notes: tuple[Note, ...] = ()
    deeds: Deeds = field(default_factory=Deeds)
    election: Balance | None = None
    """What the periodic election found; None where the policy asks for none."""
    progress: Progress | None = None
    """How far the load plan has come, and why it does not go on now."""
    problem: Problem | None = None
    """What a rebalance is asked to solve, where the turn was to pose that."""
    strimzi: Strimzi | None = None
    """What Strimzi says of the cluster, where it runs it."""
    ward: Ward = field(default_factory=lambda: Ward(()))
    """The partitions that are not led by a full ISR, each with its risk."""
    displaced_for_racks: int = 0
    """How many of the displaced stand so for good, as the racks of the policy want it."""

    @property
    def held_by_reason(self) -> dict[Reason, int]:
        """How many partitions are held back for each reason."""
        return dict(sorted(Counter(h.reason for h in self.held).items()))

    @property
    def held_sample(self) -> tuple[Hold, ...]:
        """The first few held partitions, in a stable order."""
        return tuple(sorted(self.held, key=lambda h: (h.topic, h.key.partition))[:SAMPLE_SIZE])

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do: no move planned and none held back for long."""
        return self.plan.quiet and not self.deeds.changed

    def condition(self, type_: str) -> Condition:
        """The condition of that type. Raises KeyError where there is none."""
        return of_type(self.conditions, type_)


def report(
    snapshot: Snapshot,
    policy: Policy,
    verdicts: Mapping[int, Verdict],
    plan: Plan,
    deeds: Deeds,
    notes: tuple[Note, ...] = (),
    progress: Progress | None = None,
    problem: Problem | None = None,
    quarantines: Quarantines | None = None,
) -> Report:
    """What to say of a turn. Pure, and without anything that changes from turn to turn by itself."""
    held = tuple({h.key: h for h in (*plan.holds, *deeds.holds)}.values())
    acting = policy.acts
    demoted = plan.decisions.demoted if acting else snapshot.record.demoted
    would = () if acting else tuple(sorted(set(plan.decisions.demoted) - set(snapshot.record.demoted)))
    found = whereabouts(snapshot, policy, plan)
    return Report(
        now=snapshot.now,
        cluster_id=snapshot.cluster.cluster_id,
        epoch=snapshot.record.epoch,
        conditions=(*_conditions(snapshot, policy, plan, deeds, held, would), *_waiting(plan, held, progress)),
        brokers=_brokers(snapshot, policy, verdicts, plan, demoted, quarantines or Quarantines()),
        standings={s: sum(1 for v in verdicts.values() if v.standing is s) for s in Standing},
        partitions=len(snapshot.cluster.partitions),
        leaderless=sum(p.leader is None for p in snapshot.cluster.partitions),
        displaced=found.displaced,
        displaced_for_racks=found.for_racks,
        leaders_out_of_place=found.leaders_out_of_place,
        plan=plan,
        held=held,
        would_demote=would,
        notes=notes,
        deeds=deeds,
        progress=progress,
        problem=problem,
        strimzi=snapshot.strimzi,
        ward=shortcomings(snapshot.cluster, snapshot.floors),
    )


def _brokers(
    snapshot: Snapshot,
    policy: Policy,
    verdicts: Mapping[int, Verdict],
    plan: Plan,
    demoted: Mapping[int, Demoted],
    quarantines: Quarantines,
) -> tuple[BrokerReport, ...]:
    leaders = snapshot.cluster.leaders()
    replicas = Counter(r for p in snapshot.cluster.partitions for r in p.replicas)
    preferred = Counter(p.replicas[0] for p in snapshot.cluster.partitions)
    slow = {b for b, v in verdicts.items() if v.slow is not None}
    waited_for = Counter(b for p in snapshot.cluster.partitions for b in slow.intersection(p.isr) if p.leader != b)
    pods = {**(snapshot.strimzi.pods if snapshot.strimzi is not None else {}), **(snapshot.pods or {})}
    back = plan.decisions.returning if policy.acts else snapshot.record.returning
    waves = policy.promotion.waves
    ended = {o.broker: o.until for o in snapshot.overrides if o.until is not None and not o.active(snapshot.now)}
    reports = []
    for broker, verdict in sorted(verdicts.items()):
        registered = snapshot.cluster.brokers.get(broker)
        flaps = snapshot.flaps.get(broker)
        reports.append(
            BrokerReport(
                broker=broker,
                verdict=verdict,
                rack=registered.rack if registered is not None else None,
                registered=registered is not None,
                leaders=leaders.get(broker, 0),
                preferred_leaders=preferred[broker],
                replicas=replicas[broker],
                demoted=demoted.get(broker),
                hold=plan.decisions.hold_of(broker),
                dwelling=broker in plan.decisions.dwelling,
                unripe=verdict.standing is Standing.SICK and not ripe(verdict, snapshot, policy),
                waited_for=waited_for[broker],
                flaps=flaps,
                stabilization_seconds=stabilization(flaps, policy),
                pod=pods[broker].name if broker in pods else "",
                way=Way.of(back.get(broker), waves, plan.withheld.get(broker, 0), plan.decisions.waits.get(broker)),
                drained=_drained(broker, snapshot, policy, plan, leaders.get(broker, 0)),
                ended=ended.get(broker),
                confinement=quarantines.orders.get(broker),
                unpaused=quarantines.held.get(broker),
                paused=broker in quarantines.paused,
            )
        )
    return tuple(reports)


def _drained(broker: int, snapshot: Snapshot, policy: Policy, plan: Plan, leads: int) -> Condition | None:
    """Whether a broker in maintenance may be stopped: nothing is left with it, and nothing comes back to it."""
    if broker not in snapshot.maintenance:
        return None
    if not policy.acts:
        reason = Reason.SUSPENDED if policy.suspend else Reason.OBSERVING
        return Condition("Drained", False, reason, f"not drained: {SENTENCES[reason]}")
    hold = plan.decisions.hold_of(broker)
    if broker not in plan.decisions.demoted and hold is not None:
        return Condition("Drained", False, hold.reason, hold.message)
    ahead = sum(1 for p in snapshot.cluster.held_by(broker) if p.replicas[0] == broker)
    if leads or ahead or broker not in plan.decisions.demoted:
        text = f"leads {leads} partitions, and stands first in the order of {ahead}"
        stay = Counter(h.reason for h in plan.holds if _stays_with(broker, snapshot.cluster.by_key.get(h.key)))
        if stay:
            text += f"; held back: {', '.join(f'{n} {r}' for r, n in sorted(stay.items()))}"
        return Condition("Drained", False, Reason.DRAINING, text)
    return Condition("Drained", True, Reason.DRAINED, SENTENCES[Reason.DRAINED])


def _stays_with(broker: int, partition: Partition | None) -> bool:
    return partition is not None and broker in (partition.leader, partition.replicas[0])


def _conditions(
    snapshot: Snapshot,
    policy: Policy,
    plan: Plan,
    deeds: Deeds,
    held: tuple[Hold, ...],
    would: tuple[int, ...],
) -> tuple[Condition, ...]:
    settled = _settled(plan, deeds, held, snapshot)
    return (
        _ready(snapshot, policy, plan, settled, would),
        settled,
        _contested(held),
        _held(plan),
        *(Condition(*word) for word in words(policy.placement, snapshot.cluster)),
        *_unmeasured(snapshot, policy),
    )


def _unmeasured(snapshot: Snapshot, policy: Policy) -> Iterable[Condition]:
    """That a limit by load cannot hold; nothing where it can, or there is none."""
    text = without_loads(policy.demotion.capacity, snapshot.loads)
    if text is not None:
        yield Condition("LoadsMeasured", False, Reason.LOADS_UNKNOWN, text)


def _waiting(plan: Plan, held: tuple[Hold, ...], progress: Progress | None) -> Iterable[Condition]:
    """For whom something of the policy waits; nothing where nothing does."""
    waiting = waiting_for_others(plan, held, progress)
    if waiting is not None:
        yield Condition("WaitingForOthers", True, waiting.reason, waiting.message[:1024])


def _ready(snapshot: Snapshot, policy: Policy, plan: Plan, settled: Condition, would: tuple[int, ...]) -> Condition:
    if not snapshot.cluster.partitions:
        return Condition("Ready", True, Reason.CLUSTER_EMPTY, SENTENCES[Reason.CLUSTER_EMPTY])
    if policy.suspend:
        return Condition("Ready", False, Reason.SUSPENDED, SENTENCES[Reason.SUSPENDED])
    if policy.mode is Mode.OBSERVE:
        named = ", ".join(str(b) for b in would)
        text = f"would demote {named}" if would else "would demote nobody"
        return Condition("Ready", True, Reason.OBSERVING, text)
    for hold in plan.decisions.held:
        if hold.reason in (Reason.CAP_REACHED, Reason.SYSTEMIC_CAUSE) and hold.broker not in snapshot.maintenance:
            return Condition("Ready", True, hold.reason, f"broker {hold.broker} is sick and leads on: {hold.message}")
    if stay := sum(h.reason is Reason.CAPACITY_REACHED for h in plan.holds):
        text = f"{stay} leaders stay where they are: the others carry as much as spec.demotion.capacity allows"
        text += as_of(policy.demotion.capacity, snapshot.loads)
        return Condition("Ready", True, Reason.CAPACITY_REACHED, text)
    return Condition("Ready", True, settled.reason, settled.message)


def _settled(plan: Plan, deeds: Deeds, held: tuple[Hold, ...], snapshot: Snapshot) -> Condition:
    if deeds.stopped is not None:
        return Condition("Settled", False, deeds.stopped.reason, deeds.stopped.message)
    if not plan.quiet:
        return Condition("Settled", False, Reason.MOVING, f"{len(plan.moves)} partitions are to move")
    waves = sorted(plan.decisions.returning.items())
    coming = [f"{b} ({wave.share} %)" for b, wave in waves if b in snapshot.cluster.live]
    if coming:
        text = f"brokers get their leaders back in waves: {', '.join(coming)}"
        return Condition("Settled", False, Reason.RETURNING_IN_WAVES, text[:1024])
    if held:
        counts = Counter(h.reason for h in held)
        text = ", ".join(f"{n} {r}" for r, n in sorted(counts.items()))
        return Condition("Settled", True, Reason.HELD, f"partitions held back: {text}")
    return Condition("Settled", True, Reason.SETTLED, SENTENCES[Reason.SETTLED])


def _contested(held: tuple[Hold, ...]) -> Condition:
    contested = [h for h in held if h.reason is Reason.CONTESTED]
    if contested:
        text = f"{len(contested)} partitions are being reordered by somebody else, {contested[0].topic} among them"
        return Condition("Contested", True, Reason.CONTESTED, text)
    return Condition("Contested", False, Reason.SETTLED, "nobody else reorders what this policy displaced")


def _held(plan: Plan) -> Condition:
    held = plan.decisions.held
    if held:
        text = "; ".join(f"broker {h.broker}: {h.message}" for h in held)
        return Condition("DemotionHeld", True, held[0].reason, text[:1024])
    return Condition("DemotionHeld", False, Reason.SETTLED, "no broker is held back")
