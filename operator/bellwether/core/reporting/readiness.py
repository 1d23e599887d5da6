"""Condition ``Ready`` of a policy: its reason is the worst thing that is so, its message lists all of it.

In: the context, plan, result and broker reports of a reconcile. Out: one condition. Pure. Called by
``policy_conditions``. ``RANKS`` orders what can be so, the worst first. ``Ready`` is ``False`` only where an enforcing
policy cannot do its work: the state of the Kafka cluster changes the reason, not the status (decision 51).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bellwether.core.condition import Condition
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.doctor.risks import OFFLINE, Risk, RiskSummary
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.listing import NAMED, named
from bellwether.core.model.loads import measured_at_suffix
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import Link
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.topic_impact import CLIENTS_SUFFER
from bellwether.core.settings.policy import Policy

MESSAGE_LIMIT = 1024


@dataclass(frozen=True)
class PolicyState:
    """What ``Ready`` is derived from. ``would`` are the brokers that it would demote if it acted."""

    context: Context
    plan: Plan
    result: ExecutionResult
    brokers: tuple[BrokerReport, ...]
    risks: RiskSummary
    conditions: tuple[Condition, ...]
    would: tuple[int, ...] = ()

    @property
    def policy(self) -> Policy:
        """The policy that is reported on."""
        return self.context.policy

    def condition(self, type_: str) -> Condition | None:
        """A condition of the policy; None if it has none of that type."""
        return next((c for c in self.conditions if c.type == type_), None)

    def unplanned(self, state: HealthState) -> list[BrokerReport]:
        """Brokers in that state that maintenance does not explain."""
        found = (b for b in self.brokers if b.verdict.state is state)
        return [b for b in found if b.verdict.reason is not Reason.IN_MAINTENANCE]

    def at_risk(self, *risks: Risk) -> int:
        """Number of partitions in these risk classes."""
        return sum(self.risks.counts.get(risk, 0) for risk in risks)


LOSING = CLIENTS_SUFFER | {Reason.VANTAGES_DISAGREE}
"""Reasons of Suspect brokers of which probes lose requests, of one vantage or of more."""


class Finding(NamedTuple):
    """One thing that is so. ``blocks``: an enforcing policy cannot do its work because of it."""

    reason: Reason
    message: str
    blocks: bool = False


Rank = Callable[[PolicyState], Finding | None]


def ready(state: PolicyState) -> Condition:
    """The condition ``Ready``. ``conditions`` of the state include ``Settled``."""
    found = [finding for rank in RANKS if (finding := rank(state)) is not None]
    if not found:
        text = "Every partition has the intended replica order and leader."
        if not state.context.snapshot.cluster.partitions:
            text = "The Kafka cluster has no partitions yet."
        return Condition("Ready", True, Reason.UP_TO_DATE, text)
    # A committed suspend or Observe mode is a decision: tools that wait for Ready (kstatus, Argo CD, Flux) must not
    # wait for its end.
    able = not state.policy.acts or not any(finding.blocks for finding in found)
    text = "; ".join(finding.message.replace("; ", ", ") for finding in found)
    return Condition("Ready", able, found[0].reason, text[:MESSAGE_LIMIT])


def _blocked(state: PolicyState) -> Finding | None:
    if not (holds := list(_blocked_demotions(state))):
        return None
    brokers = sorted(hold.broker for hold in holds if hold.message == holds[0].message)
    text = "is sick and still leads" if len(brokers) == 1 else "are sick and still lead"
    return Finding(holds[0].reason, f"{named(brokers)} {text}: {holds[0].message}", blocks=True)


def _blocked_demotions(state: PolicyState) -> Iterable[BrokerHold]:
    reasons = (Reason.CAP_REACHED, Reason.SYSTEMIC_CAUSE, Reason.NO_RELIEF)
    linked = {b.broker for b in state.brokers if b.verdict.reason is Reason.BROKEN_LINK}
    drained = {b.broker for b in state.brokers if b.drained is not None and b.verdict.state is not HealthState.SICK}
    passed = linked | drained | set(state.plan.decisions.dwelling)
    return (h for h in state.plan.decisions.held if h.reason in reasons and h.broker not in passed)


def _immovable(state: PolicyState) -> Finding | None:
    """No leader can be moved, whatever broker fails. A new process that still asks the brokers is no such case."""
    cluster = state.context.snapshot.cluster
    if not cluster.immovable or cluster.proving or not state.policy.acts:
        return None
    return Finding(Reason.REQUEST_REFUSED, f"no leader can be moved: {cluster.immovable}", blocks=True)


def _no_capacity(state: PolicyState) -> Finding | None:
    if not (stay := sum(h.reason is Reason.CAPACITY_REACHED for h in state.plan.holds)):
        return None
    capacity = state.policy.demotion.capacity
    text = f"{stay} leaders stay on their brokers: all others are at the limit, {capacity}"
    text += measured_at_suffix(capacity, state.context.snapshot.loads)
    return Finding(Reason.CAPACITY_REACHED, text, blocks=True)


def _inactive(state: PolicyState) -> Finding | None:
    """A policy that would demote a broker and may not."""
    if state.policy.acts or not state.would:
        return None
    leaders = sum(b.leaders for b in state.brokers if b.broker in state.would)
    verb = "leads" if len(state.would) == 1 else "lead"
    led = "1 partition" if leaders == 1 else f"{leaders} partitions"
    text = f"{_mode(state)}: would demote {named(state.would)}, which {verb} {led}"
    return Finding(Reason.NOT_ENFORCING, text)


def _sick(state: PolicyState) -> Finding | None:
    blocked = {hold.broker for hold in _blocked_demotions(state)}
    sick = [b for b in state.unplanned(HealthState.SICK) if b.demoted is None and b.broker not in blocked]
    return _judged(sick, "Sick")


def _down(state: PolicyState) -> Finding | None:
    return _judged(state.unplanned(HealthState.DOWN), "Down")


def _harmed(state: PolicyState) -> Finding | None:
    """Suspect brokers whose probes lose requests. Without their figures: this message would change with each report."""
    suspect = state.unplanned(HealthState.SUSPECT)
    harmed = [b for b in suspect if b.demoted is None and b.verdict.reason in LOSING]
    if not harmed:
        return None
    reasons = ", ".join(dict.fromkeys(b.verdict.reason for b in harmed))
    text = f"{named(b.broker for b in harmed)} {_is(harmed)} Suspect ({reasons}): probes lose requests"
    return Finding(harmed[0].verdict.reason, text)


def _aborted(state: PolicyState) -> Finding | None:
    stopped = state.result.stopped
    return Finding(stopped.reason, stopped.message) if stopped is not None else None


def _held_drains(state: PolicyState) -> Finding | None:
    """Brokers in maintenance that keep leaders, or that must not be stopped."""
    passing = (Reason.LEADERS_MOVING, Reason.NOT_ENFORCING)
    held = {b.broker: b.drained for b in state.brokers if b.drained is not None and b.drained.status is False}
    held = {broker: drained for broker, drained in held.items() if drained.reason not in passing}
    for first in held.values():
        text = f"{named(held)} {_is(held)} in maintenance and not safe to stop: {first.message}"
        return Finding(first.reason, text)
    return None


def _blind(state: PolicyState) -> Finding | None:
    """Brokers that cannot be judged; the policy is blind if that is so of every live one."""
    unknown = [b for b in state.unplanned(HealthState.UNKNOWN) if b.verdict.reason is not Reason.LISTENER_MISSING]
    if not unknown:
        return None
    live = [b for b in state.brokers if b.broker in state.context.snapshot.cluster.live]
    why = unknown[0].verdict.message
    if failing := [b for b in unknown if b.verdict.failing_evidence]:
        first = failing[0]
        others = f" ({named([b.broker for b in failing[1:]])} as well)" if failing[1:] else ""
        why = f"broker {first.broker} {first.verdict.message}{others}"
    if all(b.verdict.state is HealthState.UNKNOWN for b in live):
        return Finding(Reason.NO_EVIDENCE, f"no broker can be judged: {why}", blocks=True)
    return Finding(Reason.NO_EVIDENCE, f"{named([b.broker for b in unknown])} cannot be judged: {why}")


def _without_listener(state: PolicyState) -> Finding | None:
    """Brokers that lack the listener that is asked: what they lead is not known, and not moved."""
    cluster = state.context.snapshot.cluster
    if not cluster.unlisted:
        return None
    ids = sorted(cluster.unlisted)
    text = f"{named(ids)} cannot be judged: broker {ids[0]}: {cluster.without_listener(ids[0])}"
    return Finding(Reason.LISTENER_MISSING, text)


def _log_dir_offline(state: PolicyState) -> Finding | None:
    cluster = state.context.snapshot.cluster
    texts = [f"broker {b}: {cluster.offline_message(b)}" for b in sorted(cluster.offline_counts)[:NAMED]]
    return Finding(Reason.LOG_DIR_OFFLINE, "; ".join(texts)) if texts else None


def _delaying(state: PolicyState) -> Finding | None:
    for broker in state.brokers:
        holds = broker.holds_back_isr
        if holds.status:
            return Finding(holds.reason, f"broker {broker.broker}: {holds.message}")
    return None


def _broken_links(state: PolicyState) -> Finding | None:
    """Pairs of brokers that do not reach each other, and what is done about it."""
    texts = dict[str, None]()
    for report in state.brokers:
        led = {one.peer: one for one in report.links}
        for peer in sorted({*led, *report.verdict.links}):
            pair, one = Link.between(report.broker, peer), led.get(peer)
            if one is not None:
                verb, seen = "lead" if one.since is not None else "would lead", "do" if one.seen else "did"
                texts[f"{pair} {seen} not reach each other: others {verb} {one.partitions} partitions of both"] = None
            else:
                held = state.plan.decisions.hold_of(report.broker)
                texts[held.message if held is not None else f"{pair} do not reach each other"] = None
    return Finding(Reason.BROKEN_LINK, "; ".join(list(texts)[:NAMED])) if texts else None


def _unmet(state: PolicyState) -> Finding | None:
    """Settings that have no effect on this cluster, or are contradicted by it."""
    for type_ in ("PlacementFits", "LoadsAvailable", "ProducerAcksFit", "CanaryAvailable"):
        condition = state.condition(type_)
        if condition is not None and condition.status is False:
            return Finding(condition.reason, condition.message)
    return None


def _removed_broker(state: PolicyState) -> Finding | None:
    gone, count = state.context.snapshot.cluster.removed, state.at_risk(Risk.REMOVED_BROKER)
    text = f"naming {named(sorted(gone))}, not registered any more: Kafka refuses each new order of them"
    return _partitions(count, Reason.REMOVED_BROKER, text)


def _quiet(state: PolicyState) -> Finding | None:
    """A policy that does not act, and would demote no broker."""
    if state.policy.acts or state.would:
        return None
    return Finding(Reason.NOT_ENFORCING, f"{_mode(state)}: would demote no broker")


def _unsettled(state: PolicyState) -> Finding | None:
    """Leaders that are being moved or restored, or may not move. A policy that does not act moves none."""
    settled, stay = state.condition("Settled"), (*state.plan.holds, *state.result.holds)
    if settled is None or settled.reason is Reason.UP_TO_DATE or not state.policy.acts:
        return None
    said = all(h.reason is Reason.CAPACITY_REACHED for h in stay) and settled.reason is Reason.MOVES_BLOCKED
    if said or state.result.stopped is not None or _immovable(state) is not None:
        return None
    return Finding(settled.reason, settled.message)


def _demoted(state: PolicyState) -> Finding | None:
    demoted = [b for b in state.brokers if b.demoted is not None]
    texts = []
    if demoted:
        reasons = dict.fromkeys(b.demoted.reason for b in demoted if b.demoted is not None)
        texts.append(f"{named([b.broker for b in demoted])} {_is(demoted)} demoted ({', '.join(reasons)})")
        by_person = [b for b in demoted if b.demoted is not None and b.demoted.by_person]
        idle = [b for b in by_person if b.verdict.state is HealthState.HEALTHY]
        if idle:
            texts.append(f"{named([b.broker for b in idle])} {_is(idle)} healthy and demoted by a person")
    if partly := [b for b in state.brokers if any(one.acts for one in b.log_dirs)]:
        texts.append(f"log directories of {named([b.broker for b in partly])} are demoted ({Reason.LOG_DIR_SLOW})")
    return Finding(Reason.BROKER_DEMOTED, "; ".join(texts)) if texts else None


def _at_risk(reason: Reason, what: str, *risks: Risk) -> Rank:
    return lambda state: _partitions(state.at_risk(*risks), reason, what)


RANKS: tuple[Rank, ...] = (
    _at_risk(Reason.OFFLINE_PARTITIONS, "without a leader: no reads, no writes", *OFFLINE),
    _at_risk(Reason.UNDER_MIN_ISR, "under min.insync.replicas: acks=all writes are refused", Risk.UNDER_MIN_ISR),
    _blocked,
    _immovable,
    _no_capacity,
    _inactive,
    _sick,
    _at_risk(
        Reason.AT_MIN_ISR, "at min.insync.replicas: losing one more broker stops acks=all writes", Risk.AT_MIN_ISR
    ),
    _down,
    _harmed,
    _aborted,
    _without_listener,
    _held_drains,
    _blind,
    _broken_links,
    _delaying,
    _removed_broker,
    _unmet,
    _log_dir_offline,
    _at_risk(Reason.UNDER_REPLICATED, "with replicas out of sync", Risk.UNDER_REPLICATED),
    _quiet,
    _unsettled,
    _demoted,
)
"""What can be so, the worst first: partitions that clients miss, then brokers, then the policy's own work."""


def _partitions(count: int, reason: Reason, what: str) -> Finding | None:
    if not count:
        return None
    return Finding(reason, f"{count} partition{'s' if count > 1 else ''} {what}")


def _judged(brokers: list[BrokerReport], state: str) -> Finding | None:
    if not brokers:
        return None
    verdict = brokers[0].verdict
    why = verdict.message if len(brokers) == 1 else str(verdict.reason)
    return Finding(verdict.reason, f"{named([b.broker for b in brokers])} {_is(brokers)} {state}: {why}")


def _is(brokers: Collection[object]) -> str:
    return "is" if len(brokers) == 1 else "are"


def _mode(state: PolicyState) -> str:
    return "suspended (spec.suspend)" if state.policy.suspend else "mode Observe"
