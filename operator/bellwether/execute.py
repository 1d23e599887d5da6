"""Execute a plan: record it, then for each batch check, reorder and elect leaders; one read is check and read-back.

Called by ``reconcile`` (and so by the operator, the CLI and simulations) with a plan and the recovered record. The
decisions between two requests are pure and live in ``core/execution/reorder_checks``; here they are only ordered. No
request is repeated: what was not answered, or not done, is found by the next reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bellwether.core.execution.reorder_checks import (
    ExecutionResult,
    ReadbackResult,
    Request,
    UnseenElection,
    batches,
    can_elect,
    overtaken_message,
    precheck,
    record_intents,
    record_results,
    replica_set_changed_message,
    verify,
)
from bellwether.core.listing import few
from bellwether.core.model.cluster import Partition, PartitionKey, TopicPartition
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.model.undo_record import SentOrder, UndoRecord
from bellwether.core.planning.plan import Move, Plan
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.reporting.audit import AuditEntry, complete_entry, with_orders
from bellwether.core.settings.policy import Policy
from bellwether.ports.errors import Fenced, LeaseUnconfirmed, NotSent, RecordUnsaved, Terminal, Transient
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.ports.world import World

READ_BACK_PAUSES = (0.05, 0.1, 0.2, 0.4, *[0.8] * 4)
"""Seconds between two reads of a read-back. No election waits for it, and reads delay a busy broker further."""

_UNSEEN = {
    ReadbackResult.NOT_APPLIED: (
        Reason.NO_ANSWER,
        "Kafka accepted the new order, but a later read does not show it yet.",
    ),
    ReadbackResult.MOVING_ON: (Reason.REASSIGNING, DESCRIPTIONS[Reason.REASSIGNING]),
}
"""Results of a read-back that hold a partition, with the reason and the message."""

_NOT_ELECTED = "Kafka accepted the election, but later reads do not show the new leader."

_CLEAR = {ReadbackResult.DONE, ReadbackResult.OVERTAKEN}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that Kafka accepted; ``before`` is the partition as read right before it was sent."""

    move: Move
    before: Partition
    elected: bool


@dataclass
class Execution:
    """A run in progress: the record that covers it, and what it did so far."""

    record: UndoRecord
    reordered: int = 0
    led: set[PartitionKey] = field(default_factory=set)
    """Elections whose leader was read back."""
    stand: set[PartitionKey] = field(default_factory=set)
    recorded: list[Request] = field(default_factory=list)
    """What the stored record has as outstanding because of this run."""
    outstanding: set[Request] = field(default_factory=set)
    """Those of them that were sent and whose effect was not seen."""
    unconfirmed: dict[PartitionKey, Accepted] = field(default_factory=dict)
    """Accepted reorders that no read has shown yet."""
    elections: dict[PartitionKey, Accepted] = field(default_factory=dict)
    """Accepted elections that no read has shown yet: a leader is elected when it is read back."""
    unseen: dict[PartitionKey, UnseenElection] = field(default_factory=dict)
    """Those that no read has shown at the end."""
    asked: int | None = None
    """The broker that the reorders are sent to."""
    holds: list[Hold] = field(default_factory=list)
    refused_orders: list[Hold] = field(default_factory=list)
    refused_elections: list[Hold] = field(default_factory=list)
    touched: list[Hold] = field(default_factory=list)
    stopped: Refusal | None = None
    election_seconds: float = 0.0
    """How long Kafka took for the longest batch of elections: no partition is without a leader for longer."""

    def request(self, move: Move) -> Request:
        """The reorder of that move."""
        return move.key, SentOrder(move.order, self.asked)

    @property
    def unproven(self) -> frozenset[int | None]:
        """Brokers that may still hold a request of this run: their proof begins again."""
        return frozenset(sent.broker for _, sent in self.outstanding)

    @property
    def result(self) -> ExecutionResult:
        """The result, as a value to report."""
        return ExecutionResult(
            self.reordered,
            len(self.led),
            tuple(self.holds),
            tuple(self.touched),
            self.stopped,
            tuple(self.refused_orders),
            tuple(self.refused_elections),
        )


def execute(
    plan: Plan,
    record: UndoRecord,
    policy: Policy,
    world: World,
    strays: tuple[Partition, ...] = (),
    entry: AuditEntry | None = None,
) -> Execution:
    """Do the plan. The undo record is durable before the first reorder that it covers (invariant 6).

    ``strays`` are cancelled first: reassignments that an earlier run caused and could not cancel. ``entry`` is the
    audit entry, written before the first reorder and completed with the result.

    Raises Fenced when another holder has taken over, and RecordUnsaved.
    """
    asked = world.leaders.choose() if any(m.reorders for m in plan.moves) else None
    done = Execution(record_intents(plan, record, asked), asked=asked)
    done.recorded += [done.request(m) for m in plan.moves if m.reorders]
    save(done.record, world)
    if entry is not None:
        world.trail.begin(with_orders(entry, plan.moves, asked))
    with _aborting(done):
        if strays:
            _cancel_strays(strays, world, done)
        for batch in batches(plan, policy.election):
            if done.stopped is not None or world.stopping():
                break
            _carry_out_batch(batch, world, done)
    with _aborting(done):
        if done.unconfirmed or done.elections:
            _confirm(world, done)
    done.record = record_results(done.record, done.recorded, done.outstanding, done.stand, world.clock.now())
    if world.stopping():
        save(done.record, world)  # no reconcile follows that would, and its successor would wait for what was not sent
    if entry is not None:
        unanswered = [m for m in plan.moves if done.request(m) in done.outstanding]
        world.trail.conclude(complete_entry(with_orders(entry, unanswered, asked), done.result))
    return done


def cancel_strays(strays: tuple[Partition, ...], record: UndoRecord, world: World) -> Execution:
    """Cancel reassignments that an earlier run caused, where the policy does not act: it takes back what is ours.

    A dry run holds no Lease and cancels nothing.
    """
    done = Execution(record)
    with _aborting(done):
        if strays and world.leadership.seconds_left() > world.leaders.request_timeout_seconds:
            _cancel_strays(strays, world, done)
    done.record = record_results(done.record, done.recorded, done.outstanding, done.stand, world.clock.now())
    return done


def save(record: UndoRecord, world: World) -> None:
    """Make the undo record durable. Raises RecordUnsaved, or Fenced."""
    try:
        world.records.save(record)
    except (Transient, Terminal) as error:
        raise RecordUnsaved(str(error)) from error


@contextmanager
def _aborting(done: Execution) -> Iterator[None]:
    """What is not answered, or refused as a whole, ends the run; the next reconcile goes on."""
    try:
        yield
    except LeaseUnconfirmed as error:
        done.stopped = done.stopped or Refusal(Reason.LEASE_UNCONFIRMED, str(error))
    except RecordUnsaved as error:
        done.stopped = done.stopped or Refusal(Reason.RECORD_UNAVAILABLE, str(error))
    except Transient as error:
        done.stopped = done.stopped or Refusal(Reason.NO_ANSWER, str(error))
    except Terminal as error:
        done.stopped = done.stopped or Refusal(Reason.REQUEST_REFUSED, str(error))


def _carry_out_batch(batch: tuple[Move, ...], world: World, done: Execution) -> None:
    # Clients wait for leaders: their batches do not wait until brokers show the one before. Coordinators do, as each of
    # them reloads its state.
    clients_wait = batch[0].elect and not batch[0].internal
    fresh = _confirm(world, done, {m.topic for m in batch}, wait=not clients_wait)
    if done.stopped is not None:
        return
    checked = precheck(batch, fresh)
    done.holds.extend(checked.holds)
    pending = [m for m in checked.moves if checked.facts[m.key].replicas != m.order]
    accepted = _reorder(pending, world, done) if pending else []
    # The controller answers a reorder once it is committed, so elections need not wait until a broker's metadata shows
    # it. A read comes in any case: only it shows what else changed around the reorder.
    unsent = {m.key for m in pending} - {m.key for m in accepted}
    ready = [m for m in checked.moves if m.key not in unsent and can_elect(m, checked.facts[m.key])]
    elected = {m.key for m in ready}
    done.unconfirmed.update({m.key: Accepted(m, checked.facts[m.key], m.key in elected) for m in accepted})
    if ready:
        _elect(ready, checked.facts, world, done)


def _reorder(pending: list[Move], world: World, done: Execution) -> list[Move]:
    """Send one batch; returns the accepted moves."""
    orders = [Reorder(m.name, m.order) for m in pending]
    requests = {m.name: done.request(m) for m in pending}
    outcomes = _send(requests, lambda: world.leaders.reorder(orders, done.asked), world, done)
    accepted, refused = _sorted_out(pending, outcomes)
    done.holds.extend(refused)
    done.refused_orders.extend(refused)
    return accepted


def _send(
    requests: Mapping[TopicPartition, Request],
    ask: Callable[[], Mapping[TopicPartition, Outcome]],
    world: World,
    done: Execution,
) -> Mapping[TopicPartition, Outcome]:
    """Send reorders or cancellations that the stored record has as outstanding (invariant 7).

    They are no more once they were surely not sent, or refused, one or all. An accepted cancellation is done, and an
    accepted reorder when a read shows it.
    """
    _require_lease(world)
    done.outstanding.update(requests.values())
    try:
        outcomes = ask()
    except (NotSent, Terminal):
        done.outstanding.difference_update(requests.values())
        raise
    accepted = {request for name, request in requests.items() if name in outcomes and outcomes[name].ok}
    done.outstanding.difference_update(r for r in requests.values() if r not in accepted or not r[1].order)
    return outcomes


def _elect(ready: list[Move], facts: Mapping[PartitionKey, Partition], world: World, done: Execution) -> None:
    _require_lease(world)
    began = world.clock.monotonic()
    outcomes = world.leaders.elect([m.name for m in ready])
    done.election_seconds = max(done.election_seconds, world.clock.monotonic() - began)
    accepted, refused = _sorted_out(ready, outcomes)
    done.holds.extend(refused)
    done.refused_elections.extend(refused)
    begun = [m for m in accepted if outcomes[m.name].error == "NONE"]
    done.elections.update({m.key: Accepted(m, facts[m.key], elected=True) for m in begun})


def _confirm(
    world: World, done: Execution, topics: Collection[str] = (), *, wait: bool = True
) -> tuple[Partition, ...]:
    """Read ``topics`` and what was accepted: note which orders and leaders are in place, and undo what they set moving.

    Metadata lags behind the controller. With ``wait``, reads are repeated until all of it shows, an order has gone
    wrong, or a timeout; else what only does not show yet is left to the next call.
    """
    sent = list(done.unconfirmed.values())
    wanted = {*topics, *(a.move.topic for a in (*sent, *done.elections.values()))}
    for pause in (*READ_BACK_PAUSES, None):
        fresh = world.clusters.partitions(wanted)
        found = {p.name: p for p in fresh}
        seen = {a.move.key: verify(a.move, a.before, found.get(a.move.name), elected=a.elected) for a in sent}
        # A reassignment caused by our reorder is cancelled at once. Any other difference may be metadata that lags.
        moving = any(
            seen[a.move.key] is ReadbackResult.TOUCHED and (p := found.get(a.move.name)) and p.reassigning for a in sent
        )
        ended = {key for key, a in done.elections.items() if _leader(a, found) != a.before.leader}
        shown = set(seen.values()) <= (_CLEAR if wait else {*_CLEAR, ReadbackResult.NOT_APPLIED})
        if moving or (shown and not (wait and ended != done.elections.keys())):
            break
        if pause is not None:
            world.clock.sleep(pause)
    now = world.clock.now()
    for one in [a for key, a in done.elections.items() if wait or key in ended]:
        del done.elections[one.move.key]
        if _leader(one, found) == one.move.leads_next:
            done.led.add(one.move.key)
        if one.move.key not in ended:
            done.unseen[one.move.key] = UnseenElection(one.before.leader, one.move.leads_next, now)
            done.holds.append(Hold(one.move.key, one.move.topic, Reason.NO_ANSWER, _NOT_ELECTED))
    conflicting = [a for a in sent if seen[a.move.key] in (ReadbackResult.TOUCHED, ReadbackResult.OVERTAKEN)]
    over = wait or bool(conflicting)
    settled = [a.move for a in sent if over or seen[a.move.key] is not ReadbackResult.NOT_APPLIED]
    for move in settled:
        del done.unconfirmed[move.key]
        done.reordered += seen[move.key] in _CLEAR
        if seen[move.key] is ReadbackResult.DONE:
            done.stand.add(move.key)
        elif (why := _UNSEEN.get(seen[move.key])) is not None:
            done.holds.append(Hold(move.key, move.topic, *why))
    done.outstanding.difference_update(done.request(m) for m in settled if m.key in done.stand)
    if conflicting:
        _undo(conflicting, seen, found, world, done)
    return fresh


def _undo(
    conflicting: list[Accepted],
    seen: Mapping[PartitionKey, ReadbackResult],
    found: Mapping[TopicPartition, Partition],
    world: World,
    done: Execution,
) -> None:
    """Cancel at once what our reorder set moving, name every partition concerned, and stop (invariant 1)."""
    outcomes: Mapping[TopicPartition, Outcome] = {}
    # Only one to our order is Touched; one to another order is another tool's.
    touched = [a.move for a in conflicting if seen[a.move.key] is ReadbackResult.TOUCHED]
    if ours := [m for m in touched if (p := found.get(m.name)) is not None and p.reassigning]:
        outcomes = _cancel(ours, world, done)
    ended = [p for n, p in found.items() if n in outcomes and outcomes[n].ok]
    cancelled = {p.name: frozenset(p.replicas) - frozenset(p.adding) for p in ended}
    now = _read_cancelled({a.move.topic for a in conflicting}, cancelled, world)
    for one in conflicting:
        move, was = one.move, found.get(one.move.name)
        if seen[move.key] is ReadbackResult.OVERTAKEN and was is not None:
            text = overtaken_message(one.before, was)
        else:
            text = replica_set_changed_message(move, one.before, now.get(move.name), cancelled=move.name in cancelled)
        done.touched.append(Hold(move.key, move.topic, Reason.REPLICA_SET_CONFLICT, text))
    done.stopped = Refusal(Reason.REPLICA_SET_CONFLICT, _summary(done.touched))


def _cancel_strays(strays: tuple[Partition, ...], world: World, done: Execution) -> None:
    """Cancel stray reassignments that are unchanged, name them, and abort; hold those that Kafka does not cancel."""
    fresh = {p.key: p for p in world.clusters.partitions({p.topic for p in strays})}
    ours = [p for p in strays if (now := fresh.get(p.key)) and now.reassigning and now.target == p.target]
    if not ours:
        return
    outcomes = _cancel(ours, world, done)
    for partition in ours:
        outcome = outcomes.get(partition.name, Outcome("UNKNOWN", "no answer"))
        text = f"a late request of this operator was moving its replicas to {list(partition.target)}"
        if outcome.ok:
            text = f"{text}; it was cancelled"
            done.touched.append(Hold(partition.key, partition.topic, Reason.REPLICA_SET_CONFLICT, text))
        else:
            text = f"{text}; Kafka refused to cancel it: {outcome.error}"
            done.holds.append(Hold(partition.key, partition.topic, Reason.REASSIGNING, text))
    if done.touched:
        done.stopped = Refusal(Reason.REPLICA_SET_CONFLICT, _summary(done.touched))


def _cancel(
    ours: Sequence[Move | Partition], world: World, done: Execution, *, again: bool = True
) -> Mapping[TopicPartition, Outcome]:
    """Cancel reassignments of ours. Kafka cancels by name: a request without an answer may end another tool's later.

    ``again`` asks another broker where the first choice could not be reached.
    """
    sent = SentOrder((), world.leaders.choose())
    entries = {one.key: entry for one in ours if (entry := done.record.entries.get(one.key)) is not None}
    done.record = done.record.with_entries({key: entry.with_outstanding(sent) for key, entry in entries.items()})
    done.recorded += [(key, sent) for key in entries]
    save(done.record, world)
    requests = {one.name: (one.key, sent) for one in ours}
    try:
        return _send(requests, lambda: world.leaders.cancel(list(requests), sent.broker), world, done)
    except Transient as error:
        if done.outstanding.isdisjoint(requests.values()):
            if again and isinstance(error, NotSent) and world.leaders.choose() != sent.broker:
                return _cancel(ours, world, done, again=False)
            raise
        raise Transient(
            f"{error}: the cancellation of our own reassignment of {few(list(requests), 3)} may arrive later, and"
            " then cancel one that another tool has started: compare the replicas with that tool's plan for two minutes"
        ) from error


def _read_cancelled(
    topics: set[str], cancelled: Mapping[TopicPartition, frozenset[int]], world: World
) -> dict[TopicPartition, Partition]:
    """Read until the cancelled reassignments show the remaining replicas, or a timeout."""
    for pause in (*READ_BACK_PAUSES, None):
        now = {p.name: p for p in world.clusters.partitions(topics)}
        pending = (now.get(name) for name in cancelled)
        if all(p is None or (not p.reassigning and set(p.replicas) == cancelled[p.name]) for p in pending):
            break
        if pause is not None:
            world.clock.sleep(pause)
    return now


def _leader(one: Accepted, found: Mapping[TopicPartition, Partition]) -> int | None:
    """Who leads the partition now; -1 where it is gone, or its leader is not named."""
    now = found.get(one.move.name)
    return -1 if now is None or now.leader_unknown else now.leader


def _require_lease(world: World) -> None:
    """A request is sent only right after the Lease was read, and while it outlasts the request (invariant 7).

    What this process is paused for after that counts to the time limit of the request.
    """
    world.leaders.start_deadline()
    world.leadership.confirm()
    if world.leadership.seconds_left() <= world.leaders.request_timeout_seconds:
        raise Fenced("the time left on the Lease does not cover another request")


def _sorted_out(moves: Iterable[Move], outcomes: Mapping[TopicPartition, Outcome]) -> tuple[list[Move], list[Hold]]:
    """The moves that Kafka accepted, and the refused ones with its error."""
    accepted, refused = [], []
    for move in moves:
        outcome = outcomes.get(move.name)
        if outcome is not None and outcome.ok:
            accepted.append(move)
            continue
        text = "Kafka's answer does not mention the partition"
        if outcome is not None:
            text = f"{outcome.error}: {outcome.message}" if outcome.message else outcome.error
        # No other list of ours is invalid: each has the replicas of the partition, once.
        removed = outcome is not None and outcome.error == "INVALID_REPLICA_ASSIGNMENT"
        refused.append(Hold(move.key, move.topic, Reason.REMOVED_BROKER if removed else Reason.REQUEST_REFUSED, text))
    return accepted, refused


def _summary(touched: Iterable[Hold]) -> str:
    return few([f"{h.topic}-{h.key.partition}: {h.message}" for h in touched], 3, "; ")
