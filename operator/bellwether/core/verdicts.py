"""Judge every broker: signals in, verdicts with their reasons out. Called by the cycle, once a turn, on all brokers.

A verdict is a judgement and not an action. Missing or stale evidence is ``Unknown``, and ``Unknown`` moves nothing
(law 5). Messages hold no ages or latencies that change from turn to turn, so the same news makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from bellwether.core.baselines import Cause
from bellwether.core.policies import Policy
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.core.snapshots import Snapshot


class Standing(StrEnum):
    """What the signals of a broker add up to."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    SICK = "Sick"
    DOWN = "Down"
    RECOVERING = "Recovering"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What we think of a broker, and why. ``severity`` orders the sick: the higher, the worse."""

    broker: int
    standing: Standing
    reason: Reason
    message: str
    since: datetime
    severity: int = 0
    former: Former | None = None

    @property
    def lasting(self) -> Former:
        """What to carry on from: an Unknown carries what stood before it."""
        if self.standing is Standing.UNKNOWN and self.former is not None:
            return self.former
        return Former(self.standing, self.reason, self.since)


class Former(NamedTuple):
    """A standing with its reason, and since when it had been so."""

    standing: Standing
    reason: Reason
    since: datetime


@dataclass(frozen=True, slots=True)
class Finding:
    """What one kind of evidence says of a broker; the worst finding makes the verdict."""

    standing: Standing
    reason: Reason
    message: str
    severity: int = 0


UNREACHABLE_SEVERITY = 3
STORAGE_SEVERITY = 2

CARRIED_AT_MOST = timedelta(seconds=30)
"""How long an Unknown may last and still carry on the since-time of what stood before it."""

_WAITING = frozenset({Reason.UNANSWERING, Reason.UNCONFIRMED})
_STORAGE = frozenset({Reason.STORAGE_SLOW})
_REACHABILITY = frozenset({Reason.EXTERNALLY_UNREACHABLE, Reason.STILL_UNFENCED})

_WORST_FIRST = (Standing.SICK, Standing.DOWN, Standing.SUSPECT, Standing.UNKNOWN, Standing.HEALTHY)


def judge(snapshot: Snapshot, policy: Policy, previous: Mapping[int, Verdict]) -> dict[int, Verdict]:
    """Verdicts on every broker that is registered or named by a replica list.

    ``previous`` are the verdicts of the last turn (from status after a take-over): they carry since-times on.
    """
    evidence = without_blind_vantages(snapshot.signals, snapshot)
    verdicts = {}
    for broker in sorted(snapshot.cluster.named):
        about = [s for s in evidence if s.broker == broker]
        before = _former(previous.get(broker), snapshot.now)
        found = examine(broker, about, snapshot, policy, before)
        found = settle(broker, found, snapshot, policy, before)
        verdicts[broker] = _dated(broker, found, before, previous.get(broker), snapshot.now)
    return verdicts


def _former(verdict: Verdict | None, now: datetime) -> Former | None:
    """What a broker's last verdict hands on: through an Unknown only if that was short, as after a take-over."""
    if verdict is None:
        return None
    if verdict.standing is Standing.UNKNOWN and now - verdict.since > CARRIED_AT_MOST:
        return Former(verdict.standing, verdict.reason, verdict.since)
    return verdict.lasting


def _dated(broker: int, found: Finding, before: Former | None, last: Verdict | None, now: datetime) -> Verdict:
    since, former = now, None
    if found.standing is Standing.UNKNOWN:
        former = before
        if last is not None and (last.standing, last.reason) == (found.standing, found.reason):
            since = last.since
    elif before is not None:
        same = (before.standing, before.reason) == (found.standing, found.reason)
        if same or {before.reason, found.reason} <= _WAITING:
            since = before.since
    return Verdict(broker, found.standing, found.reason, found.message, since, found.severity, former)


def without_blind_vantages(signals: Iterable[Signal], snapshot: Snapshot) -> list[Signal]:
    """A vantage that sees every broker down has itself failed: its word becomes Unknown (law 5)."""
    signals = list(signals)
    external = [s for s in signals if s.type is SignalType.EXTERNAL_REACHABILITY and s.broker in snapshot.cluster.live]
    seen: dict[str, list[Signal]] = {}
    for signal in external:
        seen.setdefault(signal.source, []).append(signal)
    blind = {
        source for source, words in seen.items() if len(words) > 1 and all(w.reading is Reading.FAILING for w in words)
    }
    return [
        replace(s, reading=Reading.UNKNOWN, control=Reading.UNKNOWN)
        if s.type is SignalType.EXTERNAL_REACHABILITY and s.source in blind
        else s
        for s in signals
    ]


def examine(broker: int, about: list[Signal], snapshot: Snapshot, policy: Policy, before: Former | None) -> Finding:
    """The worst of what metadata and each kind of signal say of one broker."""
    registered = snapshot.cluster.brokers.get(broker)
    if registered is None:
        return Finding(Standing.DOWN, Reason.NOT_REGISTERED, "replica lists name it; it is not registered")
    if registered.fenced:
        return Finding(Standing.DOWN, Reason.FENCED, "fenced by the controller; it leads nothing")
    findings = []
    external = [s for s in about if s.type is SignalType.EXTERNAL_REACHABILITY]
    storage = [s for s in about if s.type is SignalType.STORAGE_LATENCY]
    # What demoted a broker must be seen to be well: that its evidence has vanished does not promote (law 5).
    demoted_for = _demoted_for(broker, snapshot)
    if policy.detection.reachability.enabled and (
        external or policy.detection.reachability.vantages or demoted_for in _REACHABILITY
    ):
        findings.append(reachability(external, snapshot, policy, before))
    if policy.detection.storage.enabled and (storage or demoted_for in _STORAGE):
        findings.append(storage_latency(storage, policy))
    if not findings:
        return Finding(Standing.UNKNOWN, Reason.NO_EVIDENCE, "no prober has reported on it")
    return min(findings, key=lambda f: (_WORST_FIRST.index(f.standing), -f.severity))


def _demoted_for(broker: int, snapshot: Snapshot) -> str | None:
    demoted = snapshot.record.demoted.get(broker)
    return demoted.reason if demoted is not None and demoted.cause is Cause.SIGNALS else None


def fresh(signal: Signal, stale_after_seconds: float) -> bool:
    """Whether a signal is evidence: its source was heard of recently enough, and it says something."""
    heard = signal.age_seconds is not None and signal.age_seconds <= stale_after_seconds
    return heard and signal.reading is not Reading.UNKNOWN


def quorum(vantages: int) -> int:
    """A majority of the configured vantages, and at least two where two exist."""
    return max(vantages // 2 + 1, min(2, vantages))


def reachability(external: list[Signal], snapshot: Snapshot, policy: Policy, before: Former | None) -> Finding:
    """ExternalReachability: a quorum of vantages, with the internal listener as the control."""
    known = {s.source for s in snapshot.signals if s.type is SignalType.EXTERNAL_REACHABILITY}
    vantages = sorted(policy.detection.reachability.vantages) or sorted(known)
    words = [
        s for s in external if s.source in vantages and fresh(s, policy.detection.reachability.stale_after_seconds)
    ]
    failing = sorted((s for s in words if s.reading is Reading.FAILING), key=lambda s: s.source)
    need = quorum(len(vantages))
    if len(failing) >= need:
        return _unreachable(failing, len(vantages), snapshot, policy, before)
    if len(words) < need:
        text = f"{len(words)} of {len(vantages)} vantages have fresh evidence, {need} are needed"
        return Finding(Standing.UNKNOWN, Reason.NO_EVIDENCE, text)
    if failing:
        text = f"{_names(failing)} of {len(vantages)} vantages cannot reach it, {need} are needed"
        return Finding(Standing.SUSPECT, Reason.VANTAGES_DISAGREE, text)
    return Finding(Standing.HEALTHY, Reason.SIGNALS_PASSING, "every signal passes")


def _unreachable(
    failing: list[Signal], vantages: int, snapshot: Snapshot, policy: Policy, before: Former | None
) -> Finding:
    """A quorum cannot reach the broker from outside; the control tells whether the broker or the path is at fault."""
    said = f"unreachable from {_names(failing)} ({len(failing)} of {vantages} vantages)"
    controls = [s.control for s in failing]
    if Reading.PASSING in controls:
        text = f"{said}; its internal listener answers"
        return Finding(Standing.SICK, Reason.EXTERNALLY_UNREACHABLE, text, UNREACHABLE_SEVERITY)
    confirmed = Reading.FAILING in controls
    waiting = Reason.UNANSWERING if confirmed else Reason.UNCONFIRMED
    patience = timedelta(seconds=policy.session_timeout_seconds)
    if before is not None and before.reason is Reason.STILL_UNFENCED:
        overdue = True
    else:
        overdue = before is not None and before.reason in _WAITING and snapshot.now - before.since >= patience
    if overdue:
        text = f"{said}, nor inside; Kafka has not fenced it" if confirmed else f"{said} for longer than a session"
        return Finding(Standing.SICK, Reason.STILL_UNFENCED, text, UNREACHABLE_SEVERITY)
    if confirmed:
        return Finding(Standing.DOWN, waiting, f"{said}, nor inside; left to Kafka's own fencing")
    return Finding(Standing.SUSPECT, waiting, f"{said}; no vantage could ask its internal listener")


def storage_latency(storage: list[Signal], policy: Policy) -> Finding:
    """StorageLatency: the word of the prober beside the broker's log directory."""
    words = [s for s in storage if fresh(s, policy.detection.storage.stale_after_seconds)]
    slow = next((s for s in words if s.reading is Reading.FAILING), None)
    if slow is not None:
        text = f"its log directory is slow: {slow.message}" if slow.message else "its log directory is slow"
        return Finding(Standing.SICK, Reason.STORAGE_SLOW, text, STORAGE_SEVERITY)
    if not words:
        return Finding(Standing.UNKNOWN, Reason.NO_EVIDENCE, "its storage prober has gone silent")
    return Finding(Standing.HEALTHY, Reason.SIGNALS_PASSING, "every signal passes")


def settle(broker: int, found: Finding, snapshot: Snapshot, policy: Policy, before: Former | None) -> Finding:
    """A demoted broker that is well again must stay well before it is Healthy; an undemoted one is so at once."""
    if found.standing is not Standing.HEALTHY or broker not in snapshot.record.demoted:
        return found
    if before is not None and before.standing is Standing.HEALTHY:
        return found
    wait = timedelta(seconds=policy.promotion.stabilization_seconds)
    if before is not None and before.standing is Standing.RECOVERING and snapshot.now - before.since >= wait:
        return found
    text = f"every signal passes; it must stay so for {policy.promotion.stabilization_seconds} s"
    return Finding(Standing.RECOVERING, Reason.STABILIZING, text)


def _names(signals: list[Signal]) -> str:
    return ", ".join(s.source for s in signals)
