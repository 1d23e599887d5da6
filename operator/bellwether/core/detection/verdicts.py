"""Judge every broker: signals in, verdicts with their reasons out. Called by the cycle, once a turn, on all brokers.

A verdict is a judgement and not an action. Missing or stale evidence is ``Unknown``, and ``Unknown`` moves nothing
(law 5). Each kind of evidence makes a finding, the worst finding counts, and ``health_states`` says which standing
follows. Messages hold no ages or latencies that change from turn to turn, so the same news makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from bellwether.core.detection.findings import EvidenceItem, Finding, SignalIndex, passing, worst
from bellwether.core.detection.health_states import Evidence, HealthState, next_state
from bellwether.core.detection.reachability import (
    AWAITING_FENCING,
    ReachabilityHistory,
    reachability,
    self_reachability,
)
from bellwether.core.detection.storage import storage_latency
from bellwether.core.detection.thresholds import threshold_findings
from bellwether.core.detection.verdict_inputs import VerdictInputs, shared_inputs, verdict_inputs
from bellwether.core.model.flap_damping import stabilization
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import SignalType


@dataclass(frozen=True, slots=True)
class Verdict:
    """What we think of a broker, and why. ``severity`` orders the sick: the higher, the worse.

    ``restarted`` is when it was last seen to come up, until it was reachable once or its grace is over. ``slow`` says
    that it follows slowly, whatever it leads: its disk or its replication lags. ``facts`` are what was judged, and
    ``change`` is what would make the verdict another one. ``resumed`` is when its maintenance was seen to be
    over, until startupGraceSeconds after that. ``verdict_inputs`` are those on which it stands until they change,
    whatever the time; ``None`` where time may change it.
    """

    broker: int
    state: HealthState
    reason: Reason
    message: str
    since: datetime
    severity: int = 0
    former: PreviousState | None = None
    restarted: datetime | None = None
    slow: Reason | None = None
    facts: tuple[EvidenceItem, ...] = ()
    change: str = ""
    resumed: datetime | None = None
    inputs: VerdictInputs | None = field(default=None, compare=False, repr=False)

    @property
    def lasting(self) -> PreviousState:
        """What to carry on from: an Unknown carries what stood before it."""
        if self.state is HealthState.UNKNOWN and self.former is not None:
            return self.former
        return PreviousState(self.state, self.reason, self.since)


class PreviousState(NamedTuple):
    """A standing with its reason, and since when it had been so."""

    state: HealthState
    reason: Reason
    since: datetime


CARRIED_AT_MOST = timedelta(seconds=30)
"""How long an Unknown may last and still carry on the since-time of what stood before it."""

_STORAGE = frozenset({Reason.STORAGE_SLOW})
_REACHABILITY = frozenset({Reason.EXTERNALLY_UNREACHABLE, Reason.STILL_UNFENCED})
_SLOW = frozenset({Reason.STORAGE_SLOW, Reason.REPLICATION_LAGGING})


def judge(snapshot: Snapshot, policy: Policy, previous: Mapping[int, Verdict]) -> dict[int, Verdict]:
    """Verdicts on every broker that is registered or named by a replica list.

    ``previous`` are the verdicts of the last turn (from status after a take-over): they carry since-times on, and a
    Healthy one whose grounds are still the same stands as it is.
    """
    resumed = _resumed(snapshot, policy, previous)
    scene = SignalIndex.of(snapshot, policy.detection, resumed)
    shared = shared_inputs(scene, (v.inputs for v in previous.values() if v.inputs is not None))
    verdicts = {}
    for broker in sorted(snapshot.cluster.named):
        timely = broker in snapshot.maintenance or broker in resumed
        last, known = previous.get(broker), None if timely else verdict_inputs(broker, scene, shared)
        stands = last is not None and known is not None and last.inputs == known
        verdicts[broker] = last if last is not None and stands else _judge_one(broker, scene, policy, last, known)
    return {b: replace(v, resumed=resumed.get(b)) if v.resumed != resumed.get(b) else v for b, v in verdicts.items()}


def _judge_one(
    broker: int, scene: SignalIndex, policy: Policy, last: Verdict | None, known: VerdictInputs | None
) -> Verdict:
    now = scene.snapshot.now
    before = _former(last, now)
    restarted = now if _over(last, broker, scene.snapshot) else _restarted(last, now)
    findings = examine(broker, scene, policy, before, restarted)
    found = worst(findings)
    demoted = broker in scene.snapshot.record.demoted
    wait = stabilization(scene.snapshot.flaps.get(broker), policy) if demoted else 0
    well_since = before.since if before is not None and before.state is HealthState.RECOVERING else now
    standing = next_state(
        before.state if before is not None else None,
        found.evidence,
        demoted=demoted,
        stayed_well=demoted and now - well_since >= timedelta(seconds=wait),
    )
    if standing is HealthState.RECOVERING:
        text = f"every signal passes; it must stay so for {wait} s"
        found = Finding(found.evidence, Reason.STABILIZING, text, change=f"{wait} s without a failing signal")
    since, former = _dated(standing, found.reason, before, last, now)
    coming_up = _coming_up(restarted, standing, last, findings, policy, now)
    return Verdict(
        broker=broker,
        state=standing,
        reason=found.reason,
        message=found.message,
        since=since,
        severity=found.severity,
        former=former,
        restarted=coming_up,
        slow=next((f.reason for f in findings if f.reason in _SLOW), None),
        facts=tuple(chain.from_iterable([f.facts for f in findings])),
        change=found.change,
        inputs=known if standing is HealthState.HEALTHY and coming_up is None else None,
    )


def examine(
    broker: int, scene: SignalIndex, policy: Policy, before: PreviousState | None, restarted: datetime | None
) -> list[Finding]:
    """What metadata and each kind of signal say of one broker; never empty."""
    snapshot, detection = scene.snapshot, scene.detection
    registered = snapshot.cluster.brokers.get(broker)
    why = snapshot.maintenance.get(broker)
    planned = f"in maintenance ({why.message}); " if why is not None else ""
    if registered is None:
        reason = Reason.NOT_REGISTERED if why is None else Reason.IN_MAINTENANCE
        text = f"{planned}replica lists name it; it is not registered"
        return [Finding(Evidence.GONE, reason, text, change="its registration with the controller")]
    if registered.fenced:
        reason = Reason.FENCED if why is None else Reason.IN_MAINTENANCE
        text = f"{planned}fenced by the controller; it leads nothing"
        return [Finding(Evidence.GONE, reason, text, change="the controller unfencing it")]
    if why is not None:
        text = f"{planned}what its signals say is passed over"
        return [Finding(Evidence.MISSING, Reason.IN_MAINTENANCE, text, change="the end of its maintenance")]
    findings = []
    # What demoted a broker must be seen to be well: that its evidence has vanished does not promote (law 5).
    asked = _demoted_for(broker, snapshot)
    if detection.reachability.enabled and (
        scene.about(broker, SignalType.EXTERNAL_REACHABILITY)
        or detection.reachability.vantages
        or asked in _REACHABILITY
    ):
        past = (
            ReachabilityHistory(before.reason, before.since, restarted)
            if before is not None
            else ReachabilityHistory(restarted=restarted)
        )
        findings.append(reachability(broker, scene, policy.session_timeout_seconds, past))
    if detection.self_reachability.enabled and (own := self_reachability(broker, scene)) is not None:
        reached = any(f.evidence is Evidence.GOOD for f in findings)
        findings.append(_as_a_hint(own) if reached else own)
    if detection.storage.enabled and (scene.about(broker, SignalType.STORAGE_LATENCY) or asked in _STORAGE):
        findings.append(storage_latency(broker, scene))
    demoted = broker in snapshot.record.demoted
    findings.extend(threshold_findings(broker, scene, demoted=demoted, demoted_for=asked))
    if not findings:
        text = "no prober has reported on it"
        return [Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, change="a prober reporting on it")]
    return findings


def _as_a_hint(own: Finding) -> Finding:
    """A quorum of vantages reaches the broker: that nobody else connects is a fact and no doubt."""
    return passing(own.facts)


def _demoted_for(broker: int, snapshot: Snapshot) -> str | None:
    demoted = snapshot.record.demoted.get(broker)
    return demoted.reason if demoted is not None and demoted.cause is Cause.SIGNALS else None


def _former(verdict: Verdict | None, now: datetime) -> PreviousState | None:
    """What a broker's last verdict hands on: through an Unknown only if that was short, as after a take-over."""
    if verdict is None:
        return None
    if verdict.reason is Reason.IN_MAINTENANCE and verdict.lasting.state in (HealthState.SICK, HealthState.SUSPECT):
        return None  # what it was before is no reason afterwards
    if verdict.state is HealthState.UNKNOWN and now - verdict.since > CARRIED_AT_MOST:
        return PreviousState(verdict.state, verdict.reason, verdict.since)
    return verdict.lasting


def _dated(
    standing: HealthState, reason: Reason, before: PreviousState | None, last: Verdict | None, now: datetime
) -> tuple[datetime, PreviousState | None]:
    """Since when the standing has been so, and what an Unknown carries on."""
    if standing is HealthState.UNKNOWN:
        same = last is not None and (last.state, last.reason) == (standing, reason)
        return (last.since if last is not None and same else now), before
    if before is not None:
        same = (before.state, before.reason) == (standing, reason)
        if same or {before.reason, reason} <= AWAITING_FENCING:
            return before.since, None
    return now, None


def _over(last: Verdict | None, broker: int, snapshot: Snapshot) -> bool:
    """Whether the broker's maintenance has ended since the last turn."""
    return last is not None and last.reason is Reason.IN_MAINTENANCE and broker not in snapshot.maintenance


def _resumed(snapshot: Snapshot, policy: Policy, previous: Mapping[int, Verdict]) -> dict[int, datetime]:
    """When the maintenance of each broker ended that is still given time: as long as after a restart."""
    grace = timedelta(seconds=policy.detection.reachability.startup_grace_seconds)
    found = {}
    for broker, last in previous.items():
        ended = snapshot.now if _over(last, broker, snapshot) else last.resumed
        if ended is not None and broker not in snapshot.maintenance and snapshot.now - ended < grace:
            found[broker] = ended
    return found


def _restarted(last: Verdict | None, now: datetime) -> datetime | None:
    """When the broker came up, if its restart is not over yet: a broker that was Down comes up in this turn."""
    if last is None:
        return None
    return now if last.lasting.state is HealthState.DOWN else last.restarted


def _coming_up(
    restarted: datetime | None,
    standing: HealthState,
    last: Verdict | None,
    findings: list[Finding],
    policy: Policy,
    now: datetime,
) -> datetime | None:
    """What to remember of a restart: nothing while the broker is down, once it was reached, or when its time is up."""
    if restarted is None or standing is HealthState.DOWN:
        return None
    if standing is HealthState.UNKNOWN and last is not None and last.lasting.state is HealthState.DOWN:
        return None  # still carried as Down: it comes up when something is known again
    reached = any(f.evidence is Evidence.GOOD for f in findings[:1])
    over = now - restarted >= timedelta(seconds=policy.detection.reachability.startup_grace_seconds)
    return None if reached or over else restarted
