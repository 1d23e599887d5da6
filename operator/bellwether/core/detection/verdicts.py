"""Judge every broker: signals in, verdicts with their reasons out. Called once per reconcile, for all brokers.

A verdict takes no action. Missing or stale evidence is ``Unknown``, and ``Unknown`` moves nothing (invariant 5). Each
kind of evidence gives a finding, the worst finding counts, and ``health_states`` defines the next state. Messages
contain no ages or latencies that change by themselves, so the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from bellwether.core.detection.canary import canary
from bellwether.core.detection.finding_messages import SILENT, explained
from bellwether.core.detection.findings import NOT_REPORTED, EvidenceItem, Finding, SignalIndex, passing, worst
from bellwether.core.detection.harm_weighing import own_harm
from bellwether.core.detection.health_states import Evidence, HealthState, next_state
from bellwether.core.detection.links import LinkEvidence, broken_link
from bellwether.core.detection.reachability import ReachabilityHistory, reachability, self_reachability
from bellwether.core.detection.storage import read_latency, storage_latency
from bellwether.core.detection.thresholds import threshold_findings
from bellwether.core.detection.verdict_inputs import VerdictInputs, shared_inputs, verdict_inputs
from bellwether.core.model.history.flap_damping import stabilization
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.model.history.known_good import NOT_YET_GOOD, KnownGood
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, SignalType, UnreachableCause


@dataclass(frozen=True, slots=True)
class Verdict:
    """Health state of a broker, and why. ``severity`` orders sick brokers: the higher, the worse.

    ``restarted`` is when the broker was last seen to come up, until it was reachable once or its grace period is over.
    ``slow`` says that its disk or its replication lags, whatever it leads. ``facts`` is the evidence, ``change`` what
    would change the verdict. ``noticed`` is when the harm for which the broker is Sick, or Suspect, was first noticed:
    demotion waits a dwell time from then on. ``resumed`` is when its maintenance ended, until startupGraceSeconds
    later. ``away`` is when Kafka last explained that it does not answer: it was fenced, not registered or in
    controlled shutdown. ``inputs`` are set where the verdict is valid until they change; ``None`` where time may change
    it.
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
    signal: str = ""
    """Type of the signal that fails: of one that is judged by its threshold alone, or of harm that does not demote."""
    noticed: datetime | None = field(default=None, compare=False, repr=False)
    away: datetime | None = field(default=None, compare=False, repr=False)
    inputs: VerdictInputs | None = field(default=None, compare=False, repr=False)
    log_dirs: tuple[str, ...] = ()
    """Its log directories that are bad while others are not."""
    cause: UnreachableCause | None = None
    """What requests to its listener break at."""
    links: frozenset[int] = frozenset()
    """Brokers that it does not reach, nor they it."""
    harm: tuple[tuple[HarmCause, float | None], ...] = field(default=(), compare=False, repr=False)
    """What its probes have lost so far, as ``own_harm`` gives it to ``HarmHistory``."""
    known_good: KnownGood = NOT_YET_GOOD
    """How long it is known to be good since it was demoted, or since it failed last."""
    last_known: HealthState | None = None
    """Of an Unknown verdict the state when there was evidence last; None if there never was any."""

    @property
    def failing_evidence(self) -> bool:
        """Whether a source reports that the broker fails, as far as it counts."""
        return any(f.reading is Reading.FAILING and not f.ignored_because for f in self.facts)

    @property
    def known_state(self) -> HealthState | None:
        """The state when there was evidence last, which may be now."""
        return self.state if self.state is not HealthState.UNKNOWN else self.last_known

    @property
    def lasting(self) -> PreviousState:
        """State to carry on from: an Unknown verdict carries the state before it."""
        if self.state is HealthState.UNKNOWN and self.former is not None:
            return self.former
        return PreviousState(self.state, self.reason, self.since)


class PreviousState(NamedTuple):
    """A state with its reason and start time."""

    state: HealthState
    reason: Reason
    since: datetime


CARRIED_AT_MOST = timedelta(seconds=30)
"""Longest Unknown across which the previous state keeps its start time."""

_GOOD = (HealthState.HEALTHY, HealthState.RECOVERING)
_GOOD_EVIDENCE = {Evidence.GOOD: True, Evidence.MISSING: None}
_REACHABILITY = frozenset({Reason.EXTERNALLY_UNREACHABLE, Reason.FREEZING, Reason.NOT_FENCED_IN_TIME})
_NOTICED = frozenset({Reason.HARM_BELOW_COST, Reason.LOG_DIR_SLOW, Reason.BROKEN_LINK})
_SLOW = frozenset({Reason.STORAGE_SLOW, Reason.LOG_DIR_SLOW, Reason.REPLICATION_LAGGING})


def judge(snapshot: Snapshot, policy: Policy, previous: Mapping[int, Verdict]) -> dict[int, Verdict]:
    """Verdicts for every broker that is registered or named in a replica list.

    ``previous`` are the verdicts of the last reconcile (from status after a take-over): start times are carried over,
    and a Healthy verdict with equal inputs is reused.
    """
    resumed = _resumed(snapshot, policy, previous)
    index = SignalIndex.of(snapshot, policy.detection, resumed)
    links = LinkEvidence.of(snapshot, policy.detection)
    shared = shared_inputs(index, (v.inputs for v in previous.values() if v.inputs is not None))
    timely = {end for link in (*links.broken, *snapshot.record.links) for end in link}.union(
        snapshot.maintenance, resumed
    )
    verdicts = {}
    for broker in sorted(snapshot.cluster.named):
        last, inputs = previous.get(broker), None if broker in timely else verdict_inputs(broker, index, shared)
        unchanged = last is not None and inputs is not None and last.inputs == inputs
        verdicts[broker] = (
            last if last is not None and unchanged else _judge_one(broker, index, policy, last, inputs, links)
        )
    return {b: replace(v, resumed=resumed.get(b)) if v.resumed != resumed.get(b) else v for b, v in verdicts.items()}


def _judge_one(
    broker: int,
    index: SignalIndex,
    policy: Policy,
    last: Verdict | None,
    inputs: VerdictInputs | None,
    links: LinkEvidence,
) -> Verdict:
    now = index.snapshot.now
    by_signals = _demotion_by_signals(broker, index.snapshot)
    before = _previous(last, now, index.snapshot.record.demoted.get(broker))
    restarted = _restarted(last, broker, index.snapshot)
    silent_since = before.since if before is not None and before.reason in SILENT else None
    away = _away(last, broker, index.snapshot)
    past = ReachabilityHistory(
        before.reason if before is not None else None, before.since if before is not None else None, restarted, away
    )
    findings = [explained(f, broker, index, silent_since) for f in examine(broker, index, policy, past, links)]
    found = worst(findings)
    facts = tuple(chain.from_iterable([f.facts for f in findings]))
    demoted, why = broker in index.snapshot.record.demoted, index.snapshot.maintenance.get(broker)
    known, wait, passes = NOT_YET_GOOD, 0, passing_since(facts)
    if demoted and last is not None and not _before(last.since, index.snapshot.record.demoted[broker]):
        known = last.known_good
        counting = by_signals is not None or last.known_state is HealthState.RECOVERING
        before = None if counting and known.failed_since(passes) else before
    if demoted:
        wait = stabilization(index.snapshot.flaps.get(broker), policy)
        # What was good before the end of a maintenance says nothing about the broker after it.
        good = _GOOD_EVIDENCE.get(found.evidence, False) if why is None else False
        known = known.after(good, now, wait, passes)
    state = next_state(
        before.state if before is not None else None,
        found.evidence,
        demoted=demoted,
        stayed_well=demoted and known.seconds >= wait,
    )
    if state is HealthState.RECOVERING:
        then = f"it is promoted after {wait} s with fresh, passing signals"
        text = f"every signal passes; {then if why is None else f'in maintenance ({why.message})'}"
        found = Finding(found.evidence, Reason.STABILIZING, text, change=f"{wait} s with fresh, passing signals")
    since, former = _dated(state, found.reason, before, last, now)
    restart = _restart_to_keep(restarted, state, last, findings, index)
    return Verdict(
        broker=broker,
        state=state,
        reason=found.reason,
        message=found.message,
        since=since,
        severity=found.severity,
        former=former,
        restarted=restart,
        slow=next((f.reason for f in findings if f.reason in _SLOW), None),
        facts=facts,
        change=found.change,
        signal=found.signal,
        noticed=_noticed(state, found.reason, last, now),
        away=away,
        log_dirs=tuple(sorted({path for f in findings for path in f.log_dirs})),
        cause=found.cause,
        links=frozenset().union(*(f.links for f in findings)),
        inputs=inputs if state is HealthState.HEALTHY and restart is None else None,
        harm=own_harm(broker, index, findings),
        known_good=known,
        last_known=last.known_state if state is HealthState.UNKNOWN and last is not None else None,
    )


def examine(
    broker: int, index: SignalIndex, policy: Policy, past: ReachabilityHistory, links: LinkEvidence
) -> list[Finding]:
    """Findings from metadata and from each signal type for one broker; never empty."""
    snapshot, detection = index.snapshot, index.detection
    registered = snapshot.cluster.brokers.get(broker)
    why = snapshot.maintenance.get(broker)
    planned = f"in maintenance ({why.message}); " if why is not None else ""
    if registered is None and broker in snapshot.cluster.unlisted:
        text = f"{planned}{snapshot.cluster.without_listener(broker)}"
        return [Finding(Evidence.MISSING, Reason.LISTENER_MISSING, text, change="that listener on the broker")]
    if registered is None or registered.fenced:
        reason = Reason.BROKER_DOWN if why is None else Reason.IN_MAINTENANCE
        text, change = "fenced by the controller; it leads nothing", "the controller unfencing it"
        if registered is None:
            text, change = "replica lists name it; it is not registered", "its registration with the controller"
        return [Finding(Evidence.GONE, reason, f"{planned}{text}", change=change)]
    if broker in snapshot.drained:
        text = f"{planned}its signals are ignored"
        return [Finding(Evidence.MISSING, Reason.IN_MAINTENANCE, text, change="the end of its maintenance")]
    findings: list[Finding] = []
    # The signal that demoted a broker must pass again: missing evidence does not promote (invariant 5).
    by_signals = _demotion_by_signals(broker, snapshot)
    asked = by_signals.reason if by_signals is not None else None
    if detection.external_reachability.enabled and (
        index.about(broker, SignalType.EXTERNAL_REACHABILITY)
        or detection.external_reachability.vantages
        or asked in _REACHABILITY
    ):
        findings.append(reachability(broker, index, policy.fencing_seconds, past))
    if detection.canary.enabled:
        reached = findings[0] if findings else None
        if (felt := canary(broker, index, reached, asked=asked == Reason.CANARY_FAILING)) is not None:
            findings.append(felt)
    if detection.self_reachability.enabled and (own := self_reachability(broker, index)) is not None:
        # Where a quorum of vantages reaches the broker, no other clients are evidence, but raise no doubt.
        findings.append(passing(own.facts) if _reached(findings) else own)
    if detection.storage_latency.enabled and (
        index.about(broker, SignalType.STORAGE_LATENCY) or asked == Reason.STORAGE_SLOW
    ):
        findings.append(storage_latency(broker, index))
    reads = read_latency(broker, index, asked=asked == Reason.READS_SLOW) if detection.read_latency.enabled else None
    if reads is not None:
        findings.append(reads)
    demoted = broker in snapshot.record.demoted
    findings.extend(threshold_findings(broker, index, demoted=demoted, demotion=by_signals))
    if (broken := broken_link(broker, index, links, snapshot.record.links.values())) is not None:
        findings.append(broken)
    if not findings:
        text = "no prober has reported on it"
        return [Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, change="a prober reporting on it")]
    if snapshot.cluster.offline_counts[broker]:  # a person's work: Kafka leads nothing there, and the rest serves
        text, change = snapshot.cluster.offline_message(broker), "its log directory being online"
        findings.append(Finding(Evidence.GOOD, Reason.LOG_DIR_OFFLINE, text, severity=1, change=change))
    return findings


def passing_since(facts: Iterable[EvidenceItem]) -> dict[tuple[str, str], datetime | None]:
    """Since when sources pass: those that count, and the stale, whose prober may have found something unheard.

    Not the socket table: a demoted broker may have no clients.
    """
    counted = (item for item in facts if not item.ignored_because or NOT_REPORTED in item.ignored_because)
    passing = (i for i in counted if i.reading is Reading.PASSING and i.type != SignalType.SELF_REACHABILITY)
    return {(item.type, item.source): item.since for item in passing}


def _before(moment: datetime, demoted: DemotedBroker) -> bool:
    """Whether that was before signals demoted the broker, or before its maintenance."""
    return demoted.cause in (Cause.SIGNALS, Cause.MAINTENANCE) and moment < (demoted.drained_since or demoted.since)


def _demotion_by_signals(broker: int, snapshot: Snapshot) -> DemotedBroker | None:
    demoted = snapshot.record.demoted.get(broker)
    return demoted if demoted is not None and demoted.cause is Cause.SIGNALS else None


def _previous(verdict: Verdict | None, now: datetime, demoted: DemotedBroker | None) -> PreviousState | None:
    """State to carry over from the last verdict, unless it is a good one from before signals demoted the broker, or
    from before its maintenance: the verdict that demoted it was lost with the process that made it, or it may restart.
    """
    before = _carried(verdict, now) if verdict is not None else None
    if before is None or before.state not in _GOOD or demoted is None:
        return before
    # Healthy in the very reconcile that drains it is from before as well.
    began = demoted.drained_since or demoted.since
    drained = demoted.cause is Cause.MAINTENANCE and before.state is HealthState.HEALTHY and before.since == began
    return None if drained or _before(before.since, demoted) else before


def _carried(verdict: Verdict, now: datetime) -> PreviousState | None:
    """State to carry over across an Unknown only if that was short, as after a take-over."""
    if verdict.reason is Reason.IN_MAINTENANCE and verdict.lasting.state in (HealthState.SICK, HealthState.SUSPECT):
        return None  # the state before maintenance no longer applies
    if verdict.state is HealthState.UNKNOWN and now - verdict.since > CARRIED_AT_MOST:
        return PreviousState(verdict.state, verdict.reason, verdict.since)
    return verdict.lasting


def _dated(
    state: HealthState, reason: Reason, before: PreviousState | None, last: Verdict | None, now: datetime
) -> tuple[datetime, PreviousState | None]:
    """Start time of the state, and what an Unknown verdict carries."""
    if state is HealthState.UNKNOWN:
        if last is None or (last.state, last.reason) != (state, reason):
            return now, before
        carried = before is not None and before.state is not HealthState.UNKNOWN
        return last.since, last.former if carried else before
    # Waiting for fencing goes on, whether its internal listener could be probed (Down) or not (Suspect).
    going_on = reason is Reason.UNREACHABLE
    if before is not None and before.reason == reason and (before.state == state or going_on):
        return before.since, None
    return now, None


def _noticed(state: HealthState, reason: Reason, last: Verdict | None, now: datetime) -> datetime | None:
    """When the harm of a Sick broker, or of one whose harm is below the cost of a move, was first noticed."""
    if state is not HealthState.SICK and reason not in _NOTICED:
        return None
    return last.noticed if last is not None and last.noticed is not None else now


def _over(last: Verdict | None, broker: int, snapshot: Snapshot) -> bool:
    """Whether the broker's signals were ignored, or its absence was planned, and count since the last reconcile."""
    return last is not None and last.reason is Reason.IN_MAINTENANCE and not _planned(broker, snapshot)


def _planned(broker: int, snapshot: Snapshot) -> bool:
    """Whether maintenance explains what the broker's signals say: it is drained, or has stopped."""
    gone = broker in snapshot.maintenance and broker not in snapshot.cluster.live
    return gone or broker in snapshot.drained


def _resumed(snapshot: Snapshot, policy: Policy, previous: Mapping[int, Verdict]) -> dict[int, datetime]:
    """End of maintenance of each broker that is still in its grace period, which is as long as after a restart."""
    grace = timedelta(seconds=policy.detection.external_reachability.startup_grace_seconds)
    found = {}
    for broker, last in previous.items():
        ended = snapshot.now if _over(last, broker, snapshot) else last.resumed
        if ended is not None and not _planned(broker, snapshot) and snapshot.now - ended < grace:
            found[broker] = ended
    return found


def _restarted(last: Verdict | None, broker: int, snapshot: Snapshot) -> datetime | None:
    """When the broker came up, if its restart is not over yet; one that was Down, or away, comes up now."""
    if last is None:
        return None
    comes_up = last.lasting.state is HealthState.DOWN or _over(last, broker, snapshot)
    return snapshot.now if comes_up else last.restarted


def _away(last: Verdict | None, broker: int, snapshot: Snapshot) -> datetime | None:
    """When Kafka last explained that the broker does not answer; maintenance explains it as well."""
    leaving = broker in snapshot.cluster.leaving and broker not in snapshot.record.demoted
    if leaving or broker in snapshot.drained or broker not in snapshot.cluster.live:
        return snapshot.now
    return last.away if last is not None else None


def _reached(findings: list[Finding]) -> bool:
    """Whether the first finding is that clients reach the broker."""
    return any(f.evidence is Evidence.GOOD for f in findings[:1])


def _restart_to_keep(
    restarted: datetime | None, state: HealthState, last: Verdict | None, findings: list[Finding], index: SignalIndex
) -> datetime | None:
    """Restart time to keep: none while the broker is down, after it was reached, or after its grace period."""
    if restarted is None or state is HealthState.DOWN:
        return None
    if state is HealthState.UNKNOWN and last is not None and last.lasting.state is HealthState.DOWN:
        return None  # still carried as Down until there is evidence again
    grace = timedelta(seconds=index.detection.external_reachability.startup_grace_seconds)
    return None if _reached(findings) or index.snapshot.now - restarted >= grace else restarted
