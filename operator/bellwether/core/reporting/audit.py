"""Audit log: what a reconcile set out to move, why and on whose request, and the result. Bounded in size.

Built from the reconcile's decisions; an adapter writes it next to the undo record, before the first reorder, and again
with the result. Of moves an entry has counts, brokers, a digest and a few names, and the orders that may arrive late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from bellwether.core.demotion.restoration import other_leaders_message
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import (
    Cause,
    DemotedBroker,
    EntryState,
    PlanApplication,
    SentOrder,
    UndoEntry,
    UndoRecord,
)
from bellwether.core.planning.plan import Move, MoveKind, Plan
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override
from bellwether.core.waves.rebalance_waves import WaveResult

ORDERS_KEPT = 10_000
"""Most orders of an entry: 70 to 700 kB when packed, by topics and names; what is stored has a limit of its own."""

ORDERS_LOOKED_AT = timedelta(days=7)
"""Older entries are not asked for late orders: their brokers have run since, or are gone."""

SAMPLE_SIZE = 5
"""How many moves an entry names."""

EVIDENCE_SIZE = 8
"""How many evidence items an entry shows per verdict."""

BROKERS_SHOWN = 32
"""For how many brokers an entry counts leaders lost or gained; those with the most come first."""

CHANGES_SHOWN = 50
"""How many broker changes an entry lists; ``more_changes`` counts the others."""

TEXT_LIMIT = 300


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """A broker that was demoted or promoted. ``word`` is who or what requested it.

    ``evidence`` is the evidence of the verdict, one source per line.
    """

    broker: int
    demoted: bool
    word: str
    reason: str
    message: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class MoveSummary:
    """Planned moves of a reconcile, as sums. ``leaving`` and ``coming`` count leaders lost and gained, by broker."""

    topics: int
    reorders: int
    elections: int
    restores: int
    digest: str
    leaving: Mapping[int, int] = field(default_factory=dict)
    coming: Mapping[int, int] = field(default_factory=dict)
    sample: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """Progress of an approved rebalance plan, and who approved it."""

    digest: str
    approved_by: str
    taken_up: int
    moves: int
    ended: str = ""


class UnansweredOrder(NamedTuple):
    """A reorder that may arrive late, with what the undo record has of it: enough to undo it without the record."""

    topic_id: str
    topic: str
    partition: int
    baseline: tuple[int, ...]
    order: tuple[int, ...]
    broker: int | None


@dataclass(frozen=True)
class AuditOutcome:
    """Result. ``held`` counts held partitions by reason; ``stopped`` says why the run was aborted."""

    reordered: int = 0
    elected: int = 0
    touched: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    stopped: str = ""


@dataclass(frozen=True)
class AuditEntry:
    """One reconcile that changed which brokers may lead or are held, or set out to move something.

    ``outcome`` is None until it is known; it stays so if the process was killed. ``times`` counts consecutive
    reconciles with the same content, the last one at ``last``. ``orders`` are those of its reorders that may arrive
    late, at most ``ORDERS_KEPT``: all of them until the outcome is known, then those without an answer. ``settled``:
    none of those before it may arrive any more.
    """

    at: datetime
    cluster_id: str
    epoch: int
    occasion: str = ""
    changes: tuple[BrokerChange, ...] = ()
    more_changes: int = 0
    moves: MoveSummary | None = None
    plan: PlanStep | None = None
    quarantines: tuple[QuarantineChange, ...] = ()
    outcome: AuditOutcome | None = None
    times: int = 1
    last: datetime | None = None
    orders: tuple[UnansweredOrder, ...] = ()
    settled: bool = False

    def same(self, other: AuditEntry) -> bool:
        """Whether both entries are equal except for their times."""
        return replace(self, at=other.at, times=other.times, last=other.last) == other

    def again(self, other: AuditEntry) -> AuditEntry:
        """This entry, with a later equal one counted in."""
        return replace(self, times=self.times + other.times, last=other.last or other.at)

    def brokers(self) -> frozenset[int]:
        """Every broker that the entry names."""
        moved = (*self.moves.leaving, *self.moves.coming) if self.moves is not None else ()
        held = [change.broker for change in self.quarantines]
        return frozenset((*(c.broker for c in self.changes), *held, *moved))


def begin_entry(
    context: Context,
    before: UndoRecord,
    plan: Plan,
    progress: WaveResult,
    occasion: str = "",
    approved_by: str = "",
    quarantines: tuple[QuarantineChange, ...] = (),
) -> AuditEntry | None:
    """Entry for what a reconcile sets out to do; None if nothing (invariant 8). ``before`` is the former undo
    record.
    """
    snapshot = context.snapshot
    changes = tuple(_changes(context, before, plan, occasion))
    step = _step(before.application, progress, approved_by)
    if not changes and not plan.moves and step is None and not quarantines:
        return None
    return AuditEntry(
        at=snapshot.now,
        cluster_id=snapshot.cluster.cluster_id,
        epoch=before.epoch,
        occasion=occasion,
        changes=changes[:CHANGES_SHOWN],
        more_changes=len(changes[CHANGES_SHOWN:]),
        moves=_moves(plan) if plan.moves else None,
        plan=step,
        quarantines=quarantines,
    )


def quarantine_entry(snapshot: Snapshot, quarantines: tuple[QuarantineChange, ...]) -> AuditEntry | None:
    """Entry for quarantines that end because the policy does not act any more; None if none ends."""
    if not quarantines:
        return None
    entry = AuditEntry(snapshot.now, snapshot.cluster.cluster_id, snapshot.record.epoch, quarantines=quarantines)
    return complete_entry(entry, ExecutionResult())


def command_entry(snapshot: Snapshot, plan: Plan, occasion: str) -> AuditEntry:
    """Entry for moves that a command makes itself, and that demote or promote no broker."""
    cluster = snapshot.cluster.cluster_id
    return AuditEntry(snapshot.now, cluster, snapshot.record.epoch, occasion, moves=_moves(plan))


def with_orders(entry: AuditEntry, moves: Iterable[Move], broker: int | None) -> AuditEntry:
    """The entry with the reorders among these moves, which ``broker`` is asked for."""
    sent = (
        UnansweredOrder(m.key.topic_id, m.topic, m.key.partition, m.baseline, m.order, broker)
        for m in moves
        if m.reorders
    )
    return replace(entry, orders=tuple(islice(sent, ORDERS_KEPT)))


def lost_orders(entries: Iterable[AuditEntry], cluster_id: str, now: datetime) -> dict[PartitionKey, UndoEntry]:
    """Undo entries for what may arrive late, where the undo record is lost: tombstones, by which they are undone.

    ``entries`` are the audit trail, the oldest first.
    """
    found: dict[PartitionKey, UndoEntry] = {}
    for entry in entries:
        if entry.cluster_id == cluster_id and entry.settled:
            found.clear()
        if entry.cluster_id != cluster_id or now - entry.at > ORDERS_LOOKED_AT:
            continue
        for one in entry.orders:
            key = PartitionKey(one.topic_id, one.partition)
            known = found.get(key) or UndoEntry(one.topic, one.baseline, one.baseline)
            sent = known.send(SentOrder(one.order, one.broker), one.baseline, EntryState.RESTORED)
            found[key] = replace(sent, baseline=one.baseline, written=one.baseline, replaced=None, finished_at=now)
    return found


def settled_entry(cluster_id: str, epoch: int, last: datetime) -> AuditEntry:
    """Entry right after ``last``: nothing that was sent until then may arrive late."""
    # Time and epoch identify an entry: another one may have been begun at that moment.
    at, text = last + timedelta.resolution, "no order may arrive late any more"
    return AuditEntry(at, cluster_id, epoch, text, outcome=AuditOutcome(), settled=True)


def complete_entry(entry: AuditEntry, result: ExecutionResult) -> AuditEntry:
    """The entry with its result."""
    stopped = "" if result.stopped is None else f"{result.stopped.reason}: {_clip(result.stopped.message)}"
    held = dict(sorted(Counter(str(h.reason) for h in result.holds).items()))
    return replace(entry, outcome=AuditOutcome(result.reordered, result.elected, len(result.touched), held, stopped))


def _changes(context: Context, before: UndoRecord, plan: Plan, occasion: str) -> Iterable[BrokerChange]:
    snapshot, verdicts = context.snapshot, context.verdicts
    now = plan.decisions.demoted
    for broker in sorted(now.keys() | before.demoted.keys()):
        verdict, is_now, was = verdicts.get(broker), now.get(broker), before.demoted.get(broker)
        if is_now is not None and (was is None or (was.cause, was.since) != (is_now.cause, is_now.since)):
            evidence = _evidence(verdict) if is_now.cause is Cause.SIGNALS else ()
            word = _requested_by(is_now, snapshot.override_of(broker))
            yield BrokerChange(broker, True, word, is_now.reason, _clip(is_now.message), evidence)
        elif is_now is None:
            word, reason, message = _promoted_by(broker, was, snapshot, verdict, occasion)
            yield BrokerChange(broker, False, _clip(word), reason, _clip(message), _evidence(verdict))
    yield from _log_dirs(before, plan)
    yield from _links(before, plan)
    yield from _waves(before, plan)


def _log_dirs(before: UndoRecord, plan: Plan) -> Iterable[BrokerChange]:
    """Log directories that are demoted or restored from this reconcile on."""
    now = plan.decisions.log_dirs.demoted
    for log_dir in sorted(now.keys() - before.log_dirs.keys()):
        text = f"log directory {log_dir.path}: {now[log_dir].message}"
        yield BrokerChange(log_dir.broker, True, "signals", now[log_dir].reason, _clip(text))
    for log_dir in sorted(before.log_dirs.keys() - now.keys()):
        if log_dir.broker not in plan.decisions.demoted:
            text = f"log directory {log_dir.path} may lead again"
            yield BrokerChange(log_dir.broker, False, "signals", str(Reason.LOG_DIR_SLOW), text)


def _links(before: UndoRecord, plan: Plan) -> Iterable[BrokerChange]:
    """Broken links: what both ends have is led by others, or returns to them, from this reconcile on."""
    now, was = plan.decisions.links.broken, before.links
    for link in sorted(now.keys() | was.keys()):
        share = now[link].share if link in now else 100
        if share == (was[link].share if link in was else 100):
            continue
        text = f"may lead {share} % of what they share again" if share < 100 else "may lead again what they share"
        if not share:
            text = "do not reach each other: others lead what they share"
        for broker in link:
            yield BrokerChange(broker, not share, "signals", str(Reason.BROKEN_LINK), f"{link} {text}")


def _waves(before: UndoRecord, plan: Plan) -> Iterable[BrokerChange]:
    """Restoration waves that started in this reconcile."""
    for broker, wave in sorted(plan.decisions.returning.items()):
        was = before.returning.get(broker)
        if was is None or was.share != wave.share:
            others = other_leaders_message(plan.early.get(broker, 0), plan.withheld.get(broker, 0))
            text = f"{wave.share} % of its leaders may be restored{others}"
            rolled_back = wave.share < (was.share if was is not None else 1)
            yield BrokerChange(broker, rolled_back, "waves", str(Reason.RESTORING_IN_WAVES), text)
    for broker in sorted(before.returning.keys() - plan.decisions.returning.keys() - plan.decisions.demoted.keys()):
        text = "all of its leaders are restored"
        yield BrokerChange(broker, False, "waves", str(Reason.RESTORING_IN_WAVES), text)


def _evidence(verdict: Verdict | None) -> tuple[str, ...]:
    facts = [f for f in verdict.facts if not f.ignored_because] if verdict is not None else []
    shown = [_clip(_evidence_line(fact)) for fact in facts[:EVIDENCE_SIZE]]
    more = len(facts) - len(shown)
    return (*shown, f"and {more} more") if more else tuple(shown)


def _evidence_line(fact: EvidenceItem) -> str:
    since = f" since {fact.since.isoformat(timespec='seconds')}" if fact.since is not None else ""
    return f"{fact.type} {fact.source}: {fact.reading}{since}{f': {fact.message}' if fact.message else ''}"


def _moves(plan: Plan) -> MoveSummary:
    leaving: Counter[int] = Counter()
    coming: Counter[int] = Counter()
    for move in plan.moves:
        if move.elect and move.leader != move.leads_next:
            coming[move.leads_next] += 1
            if move.leader is not None:
                leaving[move.leader] += 1
    return MoveSummary(
        topics=len({m.key.topic_id for m in plan.moves}),
        reorders=sum(1 for m in plan.moves if m.reorders),
        elections=sum(1 for m in plan.moves if m.elect),
        restores=sum(1 for m in plan.moves if m.kind is MoveKind.RESTORE),
        digest=plan.digest,
        leaving=dict(leaving.most_common(BROKERS_SHOWN)),
        coming=dict(coming.most_common(BROKERS_SHOWN)),
        sample=tuple(_clip(_shown(m)) for m in plan.moves[:SAMPLE_SIZE]),
    )


def _shown(move: Move) -> str:
    if not move.reorders:
        return f"{move.topic}-{move.key.partition}: leader {move.leader} -> {move.leads_next}"
    return f"{move.topic}-{move.key.partition}: {list(move.seen)} -> {list(move.order)}"


def _step(before: PlanApplication | None, progress: WaveResult, approved_by: str) -> PlanStep | None:
    """Progress of a rebalance plan in this reconcile; None if unchanged."""
    place, now = attrgetter("digest", "taken_up", "ended"), progress.application
    if now is None or (before is not None and place(before) == place(now)):
        return None
    return PlanStep(now.digest, approved_by, now.taken_up, now.moves, str(now.ended or ""))


def _clip(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"


def _requested_by(demoted: DemotedBroker, override: Override | None) -> str:
    """Who or what demoted a broker."""
    if demoted.cause is Cause.SIGNALS:
        return "signals"
    who = override.by if override is not None else ""
    if demoted.cause is Cause.MAINTENANCE:
        asked = demoted.reason != Reason.RESTARTING
        return f"maintenance{f' by {who}' if who else ''}" if asked else "its pod's restart"
    return f"{'override' if demoted.cause is Cause.OVERRIDE else 'command'}{f' by {who}' if who else ''}"


def _promoted_by(
    broker: int, was: DemotedBroker | None, snapshot: Snapshot, verdict: Verdict | None, occasion: str
) -> tuple[str, str, str]:
    """Who or what promotes a broker, with reason and message. ``was``: its demotion."""
    override = snapshot.override_of(broker)
    if occasion:
        return occasion, str(verdict.reason) if verdict is not None else "", verdict.message if verdict else ""
    if override is not None:
        return f"override{f' by {override.by}' if override.by else ''}", f"Override{override.state}", override.reason
    if verdict is None:
        return "cluster", str(Reason.BROKER_DOWN), "no replica list names the broker any more"
    return _end_of(was, snapshot), str(verdict.reason), verdict.message


def _end_of(was: DemotedBroker | None, snapshot: Snapshot) -> str:
    """What ended a demotion. The API server does not say in the object who removed an override."""
    if was is not None and was.cause is Cause.MAINTENANCE:
        return "the end of its maintenance"
    if was is not None and was.cause is Cause.OVERRIDE:
        end = "end" if any(o.broker == was.broker for o in snapshot.overrides) else "removal"
        return f"the {end} of its override{f' ({was.message})' if was.by_person else ''}"
    return "signals"
