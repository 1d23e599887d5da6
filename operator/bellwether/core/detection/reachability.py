"""Reachability: judge a broker by a quorum of vantages, with the internal listener as control.

Called by ``verdicts`` for each broker. External failing and internal passing is the fast path; both failing is
``Down``, left to Kafka's fencing unless that should be over or will not come, or the broker has frozen again and again.
The broker's own socket table gives a second, independent signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from bellwether.core.detection.finding_messages import cause_words, main_cause
from bellwether.core.detection.findings import (
    EvidenceItem,
    Finding,
    SignalIndex,
    below_cost,
    evidence_item,
    lost_seconds,
    ongoing,
    passing,
    quorum,
    recent,
    vantage_items,
    worst,
)
from bellwether.core.detection.harm import PROBES_LOST, lost_words
from bellwether.core.detection.harm_weighing import Weighing, weigh
from bellwether.core.detection.health_states import Evidence
from bellwether.core.detection.storage import stalled_without_metadata_log
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import ALLOWANCE, EPISODE_OVER_SECONDS
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal, SignalType, UnreachableCause

FORGOTTEN_AFTER = timedelta(seconds=EPISODE_OVER_SECONDS / ALLOWANCE)
"""A source has forgotten the harm of a gap after so long without a lost request."""

UNFENCED_SEVERITY = 6
UNREACHABLE_SEVERITY = 5


@dataclass(frozen=True, slots=True)
class ReachabilityHistory:
    """Input from earlier reconciles: the current reason, the last restart that is not over yet, and when Kafka last
    explained that the broker does not answer.
    """

    reason: Reason | None = None
    since: datetime | None = None
    restarted: datetime | None = None
    away: datetime | None = None


def reachability(broker: int, index: SignalIndex, fencing_seconds: float, past: ReachabilityHistory) -> Finding:
    """Judge the reachability of one broker from its vantages, each listener for itself.

    Vantages that fail at different listeners do not agree; the worst finding counts, and names its listeners.
    """
    said = index.about(broker, SignalType.EXTERNAL_REACHABILITY)
    patience = index.detection.external_reachability.stale_after_seconds
    facts = vantage_items(said, patience, index.vantages, index.reaches_no_broker)
    views = index.listeners if any(s.failing_listeners for s in said) else {}
    if not views:
        return _judged(_View.of(broker, index, past, facts), fencing_seconds)
    seen = {name: _View.of(broker, view, past, facts) for name, view in views.items()}
    failing = {name: [s.source for s in view.failing] for name, view in seen.items()}
    order = sorted(seen, key=lambda name: (-len(failing[name]), name))
    findings = {name: _judged(seen[name], fencing_seconds) for name in order}
    found = worst(findings.values())
    if found.evidence is Evidence.GOOD:
        return found
    first = next(name for name, one in findings.items() if one is found)
    alike = [n for n, one in findings.items() if one[:2] == found[:2] and failing[n] == failing[first]]
    named = f"listener{'s' if len(alike) > 1 else ''} {', '.join(alike)}"
    return found._replace(message=f"{named}: {found.message}")


class _View(NamedTuple):
    """What the vantages say of one broker, at one listener or at all: the fresh ``words`` and, by source, those of them
    that are ``failing``; ``need`` of ``total`` vantages are a quorum.
    """

    broker: int
    signals: SignalIndex
    past: ReachabilityHistory
    facts: tuple[EvidenceItem, ...]
    words: Sequence[Signal]
    failing: Sequence[Signal]
    total: int
    need: int

    @classmethod
    def of(cls, broker: int, index: SignalIndex, past: ReachabilityHistory, facts: tuple[EvidenceItem, ...]) -> _View:
        """The view of an index."""
        words, total = index.heard(broker, SignalType.EXTERNAL_REACHABILITY), len(index.vantages)
        failing = sorted([s for s in words if s.reading is Reading.FAILING], key=lambda s: s.source)
        return cls(broker, index, past, facts, words, failing, total, quorum(total))

    @property
    def unreachable(self) -> str:
        """From where it is not reached, and why."""
        of = f"({len(self.failing)} of {self.total} vantages)"
        return f"unreachable from {_names(self.failing)} {of}{_why(self.failing)}"

    def doubtful(self, reason: Reason, text: str, change: str) -> Finding:
        """A finding that makes the broker Suspect, with what its requests break at."""
        cause = main_cause(self.failing)
        return Finding(Evidence.DOUBTFUL, reason, text, facts=self.facts, change=change, cause=cause)


def _judged(view: _View, fencing_seconds: float) -> Finding:
    broker, index, past, facts, words, failing, total, need = view
    quiet = len(words) == len(failing) > 0 and no_external_clients(broker, index)
    unreachable = len(failing) + quiet >= need > 0
    # A quorum agrees on what the vantage lost that lost least of those that it needs.
    needed = max(need - quiet, 1)
    agreeing = sorted(failing, key=lost_seconds, reverse=True)[needed - 1] if unreachable else None
    agreed = lost_seconds(agreeing) if agreeing is not None else 0.0
    going_on, reaching = sum(map(ongoing, failing)) >= needed, _disputing(words, past) if unreachable else ()
    weighed = weigh(agreed, broker, index, HarmCause.REACHABILITY, ongoing=going_on, disputed=bool(reaching))
    if agreeing is not None and agreeing.harm is not None:
        weighed = replace(weighed, earlier_seconds=agreeing.harm.earlier_seconds)
    if (frozen := _freezing(view, weighed if unreachable else None)) is not None:
        return frozen
    undisputed = replace(weighed, disputed=False)
    if unreachable and not undisputed.worth_moving:
        return _below_cost(view, weighed)
    refused = f"{_names(failing)} of {total} vantages cannot reach it{_why(failing)}"
    if reaching and not (weighed.worth_moving and _answers_inside(failing)):
        text = f"{refused}, and {_names(reaching)} can; {_lost(weighed)}"
        change = f"{weighed.change}, one more vantage failing or fewer as well"
        return view.doubtful(Reason.VANTAGE_CONFLICT, text, change)
    if unreachable:
        found = _unreachable(view, fencing_seconds, undisputed)
        change = f"fewer than {need} of {total} vantages failing"
        return found._replace(facts=facts, change=found.change or change, cause=main_cause(failing))
    if len(words) < need or not words:
        return _too_few(view)
    if failing:
        change = f"{need} vantages failing makes it Sick, none failing makes it Healthy"
        return view.doubtful(Reason.VANTAGES_DISAGREE, f"{refused}, {need} are needed{_others(view)}", change)
    slow = sorted([s for s in words if s.cause is UnreachableCause.SLOW], key=lambda s: s.source)
    if len(slow) >= need:
        text = f"slow from {_names(slow)} ({len(slow)} of {total} vantages){_why(slow)}; no request of theirs is lost"
        change = "requests of a client's size that are not answered in time make it Sick, fast answers Healthy"
        return below_cost(text, facts, change, SignalType.EXTERNAL_REACHABILITY, UnreachableCause.SLOW)
    limit = weigh(0.0, broker, index, HarmCause.REACHABILITY)
    change = f"{need} of {total} vantages failing until probes have lost {limit.limit_seconds:.1f} s: {limit}"
    return passing(facts, change)


def _too_few(view: _View) -> Finding:
    """Fewer vantages than the quorum have fresh evidence: what those say that have, and which are missing."""
    broker, index, _, facts, words, failing, total, need = view
    need = max(need, 1)
    seen = {s.source for s in words}
    missing = [v for v in index.vantages if v not in seen]
    text = f"{len(words)} of {total} vantages have fresh evidence, {need} are needed"
    if missing and index.blind.issuperset(index.vantages):
        words = [s for s in index.about(broker, SignalType.EXTERNAL_REACHABILITY) if s.reading is Reading.FAILING]
        shared = "what they share has failed, or what all brokers share; nothing is moved"
        text = f"no vantage reaches any broker ({', '.join(missing)}){_why(words)}: {shared}"
        change = "one of them reaching a broker; a test from a client shows whether clients reach one"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts, change=change)
    problems, remedies = _why_missing(broker, missing, index)
    if failing:
        reaching = ", ".join(sorted(seen - {s.source for s in failing}))
        said = f"cannot be reached from {_names(failing)}{_why(failing)}{f', but from {reaching}' if reaching else ''}"
        more, names = need - len(words), ", ".join(missing)
        until = f"{names if more == len(missing) else f'{more} of {names}'} {'reports' if more == 1 else 'report'}"
        held = "it stays demoted" if broker in index.snapshot.record.demoted else "it will not be demoted"
        text = f"{said}; {problems}; {held} until {until} ({text})"
    elif missing:
        text = f"{text}: {problems}"
    change = f"fresh evidence from {need} vantages: {remedies or 'a prober reporting for this policy'}"
    return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts, change=change)


def _why_missing(broker: int, missing: Sequence[str], index: SignalIndex) -> tuple[str, str]:
    """Why vantages have no fresh evidence, and what to do about each kind."""
    patience = index.detection.external_reachability.stale_after_seconds
    said = {s.source: s for s in index.about(broker, SignalType.EXTERNAL_REACHABILITY) if recent(s, patience)}
    unknown = [v for v in missing if v in said and v not in index.blind]
    causes = {said[v].message for v in unknown}
    cause = f" ({text})" if len(causes) == 1 and (text := causes.pop()) else ""
    kinds = (
        ([v for v in missing if v not in said], "no fresh report from", "", "start the prober of"),
        (unknown, "Unknown from", cause, "check the prober of"),
        ([v for v in missing if v in said and v in index.blind], "every broker fails from", "", "check the network of"),
    )
    problems = [f"{problem} {', '.join(vantages)}{why}" for vantages, problem, why, _ in kinds if vantages]
    remedies = [f"{remedy} {', '.join(vantages)}" for vantages, _, _, remedy in kinds if vantages]
    return ", ".join(problems), ", ".join(remedies)


def _freezing(view: _View, lost: Weighing | None) -> Finding | None:
    """The finding that a broker is freezing: gaps in which no listener answered have cost as much as a move, and a part
    of them is over. Suspect until they have cost as much.

    It stays so until most of the harm of those that are over has faded: its answers between two gaps are no recovery,
    and its silence is no news. A gap that Kafka explains is a restart, and one gap alone is left to Kafka's fencing.
    ``lost`` is set while a quorum fails.
    """
    broker, index, past, facts, words, _, _, need = view
    now = index.snapshot.now
    if len(words) < need or (past.away is not None and now - past.away < FORGOTTEN_AFTER):
        return None
    frozen = sorted((s.harm.frozen_seconds if s.harm is not None else 0.0 for s in words), reverse=True)[need - 1]
    weighed = weigh(frozen, broker, index, HarmCause.REACHABILITY)
    if not weighed.noticeable or (lost is not None and _answers_inside(words) and past.reason is not Reason.FREEZING):
        return None
    # No figure that grows with each gap: the message stays the same for as long as it freezes.
    silent = "neither its external nor its internal listener answers"
    if all(s.control is Reading.UNKNOWN for s in words):
        silent = "its external listener does not answer (no vantage could probe its internal one)"
    change = "a minute of answers, or less harm than a third of what moving its leaders costs"
    if past.reason is Reason.FREEZING or (lost is not None and lost.worth_moving):
        text = (
            f"it freezes for seconds: {silent}, each time for less than Kafka needs to fence it (check garbage"
            f" collection, CPU limits and its host); {PROBES_LOST} more than {weighed.limit_seconds:.1f} s, and"
            f" {weighed}"
        )
        return Finding(Evidence.BAD, Reason.FREEZING, text, UNREACHABLE_SEVERITY, facts, change)
    text = f"it did not answer for seconds, less than a minute ago: {silent}; {weighed}"
    return below_cost(text, facts, f"{change}; {weighed.change}", SignalType.EXTERNAL_REACHABILITY)


def _below_cost(view: _View, weighed: Weighing) -> Finding:
    """A quorum fails, and its probes have lost less than a move costs."""
    if not weighed.noticeable and view.broker not in view.signals.snapshot.record.demoted:
        return passing(view.facts, f"probes losing {weighed.limit_seconds:.1f} s: {weighed}")
    text = f"{view.unreachable}; {_lost(weighed)}"
    change = f"{weighed.change}, five seconds of answers Healthy"
    return below_cost(text, view.facts, change, SignalType.EXTERNAL_REACHABILITY, main_cause(view.failing))


def _lost(weighed: Weighing) -> str:
    return f"its {PROBES_LOST} {lost_words(weighed.lost_seconds, weighed.earlier_seconds)}, and {weighed}"


def self_reachability(broker: int, index: SignalIndex) -> Finding | None:
    """Judge the broker's own socket table: alone it is only a hint, as clients may have nothing to do."""
    settings = index.detection.self_reachability
    said = index.about(broker, SignalType.SELF_REACHABILITY)
    if not said:
        return None
    facts = tuple([evidence_item(s, settings.stale_after_seconds) for s in said])
    if no_external_clients(broker, index):
        text = "no external client is connected to it, while most of its peers have clients"
        change = "an external client connecting, or most of its peers having no clients either"
        return Finding(Evidence.DOUBTFUL, Reason.VANTAGES_DISAGREE, text, facts=facts, change=change)
    return passing(facts)


def _disputing(words: Sequence[Signal], past: ReachabilityHistory) -> Sequence[Signal]:
    """Vantages that still reach a broker that a quorum cannot reach, which raises the price of a move.

    A faulty broker is unreachable from everywhere. If some vantages reach it, the usual cause is two broken paths at
    the same time (docs/decisions/0085). What raised a verdict without a dispute, or in spite of it, keeps it.
    """
    if past.reason is Reason.NOT_FENCED_IN_TIME:
        return ()
    if past.reason is Reason.EXTERNALLY_UNREACHABLE and _answers_inside(words):
        return ()
    return [s for s in words if s.reading is Reading.PASSING]


def _answers_inside(words: Sequence[Signal]) -> bool:
    """Whether a vantage that cannot reach the broker from outside reaches its internal listener."""
    return any(s.reading is Reading.FAILING and s.control is Reading.PASSING for s in words)


def no_external_clients(broker: int, index: SignalIndex) -> bool:
    """Whether a broker that leads has no external clients while most of its peers have."""
    seen = index.external_clients_seen
    leads = index.snapshot.cluster.leader_counts[broker]
    if not index.detection.self_reachability.enabled or seen.get(broker, True) or not leads:
        return False
    return 2 * index.brokers_with_clients > len(seen) - 1


def _unreachable(view: _View, fencing_seconds: float, weighed: Weighing) -> Finding:
    """A quorum cannot reach the broker from outside; the control shows whether the broker or the path is at fault."""
    broker, index, past, _, _, failing, _, need = view
    said = view.unreachable
    if len(failing) < need:
        said += " and its own socket table shows no external client"
    now = index.snapshot.now
    if _answers_inside(failing):
        grace = index.detection.external_reachability.startup_grace_seconds
        if past.restarted is not None and now - past.restarted < timedelta(seconds=grace):
            text = f"{said}; it has restarted; the load balancer has {grace} s to detect it"
            change = "a quorum of vantages reaching it, or the end of startupGraceSeconds"
            return Finding(Evidence.DOUBTFUL, Reason.RESTARTING, text, change=change)
        if broker in index.snapshot.cluster.leaving and broker not in index.snapshot.record.demoted:
            text = f"{said}; it is in controlled shutdown: it has left every ISR and has no leaders to move"
            change = "its return to an ISR, or Kafka fencing it"
            return Finding(Evidence.DOUBTFUL, Reason.RESTARTING, text, change=change)
        measured = any(s.harm is not None for s in failing)
        text = f"{said}; its internal listener answers; {_lost(weighed) if measured else weighed}"
        return Finding(Evidence.BAD, Reason.EXTERNALLY_UNREACHABLE, text, UNREACHABLE_SEVERITY)
    confirmed = any(s.control is Reading.FAILING for s in failing)
    patience = timedelta(seconds=fencing_seconds)
    waited = past.since is not None and past.reason is Reason.UNREACHABLE and now - past.since >= patience
    overdue = waited or past.reason is Reason.NOT_FENCED_IN_TIME
    if confirmed and (stalled := _stalled_unfenced(broker, index)):
        text = f"{said}, and its internal listener fails; {stalled}"
        change = "its internal listener answering, or that append ending"
        return Finding(Evidence.BAD, Reason.NOT_FENCED_IN_TIME, text, UNFENCED_SEVERITY, change=change)
    if overdue:
        text = f"{said} for longer than Kafka needs to fence it ({fencing_seconds:g} s)"
        if confirmed:
            text = f"{said}, and its internal listener fails; not fenced within {fencing_seconds:g} s"
        return Finding(Evidence.BAD, Reason.NOT_FENCED_IN_TIME, text, UNFENCED_SEVERITY)
    change = f"its internal listener answering, Kafka fencing it, or {fencing_seconds:g} s passing"
    if confirmed:
        text = f"{said}, and its internal listener fails; waiting for the controller to fence it"
        return Finding(Evidence.GONE, Reason.UNREACHABLE, text, change=change)
    text = f"{said}; no vantage could probe its internal listener"
    return Finding(Evidence.DOUBTFUL, Reason.UNREACHABLE, text, change=change)


def _stalled_unfenced(broker: int, index: SignalIndex) -> str:
    """Why Kafka will not fence a broker that does not answer: a log directory has stalled, its metadata log goes on.

    Its request threads hang on the directory while heartbeats go on. Empty where Kafka may fence it, and for a broker
    that quarantine may hold: it does not answer because it is stopped.
    """
    stalled = stalled_without_metadata_log(index.disks_heard(broker)) if index.detection.storage_latency.enabled else ()
    held = any(s.reading is Reading.FAILING for s in index.about(broker, QUARANTINE_AGENT))
    if not stalled or held or index.snapshot.may_be_held(broker):
        return ""
    where = ", ".join(path for path in stalled if path) or "its log directory"
    return (
        f"an append to {where} does not end, and its metadata log lies elsewhere: heartbeats go on, so the controller"
        " does not fence it"
    )


def _others(view: _View) -> str:
    """What the vantages say that do not fail: which reach the broker, and why the rest is not known."""
    reaching = sorted(s.source for s in view.words if s.reading is not Reading.FAILING)
    seen = {s.source for s in view.words}
    problems, _ = _why_missing(view.broker, [v for v in view.signals.vantages if v not in seen], view.signals)
    known = [f"reached from {', '.join(reaching)}"] if reaching else []
    return "".join(f"; {text}" for text in (*known, problems) if text)


def _why(failing: Sequence[Signal]) -> str:
    words = cause_words(failing)
    return f": {words}" if words else ""


def _names(signals: Sequence[Signal]) -> str:
    return ", ".join(s.source for s in signals)
