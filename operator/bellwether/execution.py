"""Carry a plan out: record, check, reorder, read back, elect; batch by batch, stopping at the first thing amiss.

Called by ``cycle`` (and so by the operator, the CLI and simulations) with a plan and the recovered record. The
decisions between two requests are pure and live in ``core/elections``; here they are only put in order. No request is
repeated: what was not answered, or not done, is found by the next turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.baselines import EntryState, UndoRecord
from bellwether.core.clusters import Partition, PartitionKey, TopicPartition
from bellwether.core.elections import Checked, Seen, batches, check, electable, intents, verify
from bellwether.core.guards import Hold
from bellwether.core.plans import Move, Plan
from bellwether.core.policies import Policy
from bellwether.core.reasons import SENTENCES, Reason
from bellwether.core.statuses import Deeds, Stop
from bellwether.ports import Fenced, Outcome, Reorder, Transient, World

READ_BACK_TRIES = 20
READ_BACK_PAUSE_SECONDS = 0.05


@dataclass
class Execution:
    """A run in progress: the record that covers it, and what it did so far."""

    record: UndoRecord
    reordered: int = 0
    elected: int = 0
    holds: list[Hold] = field(default_factory=list)
    touched: list[Hold] = field(default_factory=list)
    stopped: Stop | None = None

    @property
    def deeds(self) -> Deeds:
        """What was done, as a value to report."""
        return Deeds(self.reordered, self.elected, tuple(self.holds), tuple(self.touched), self.stopped)


def carry_out(plan: Plan, record: UndoRecord, policy: Policy, world: World) -> Execution:
    """Do the plan. The undo record is durable before the first reorder that it covers (law 6).

    Raises Fenced when another holder has taken over, and Transient when the record could not be saved.
    """
    done = Execution(intents(plan, record))
    world.records.save(done.record)
    for batch in batches(plan, policy.election):
        try:
            _carry_out_batch(batch, world, done)
        except Transient as error:
            done.stopped = Stop(Reason.NO_ANSWER, str(error))
        if done.stopped is not None:
            break
    return done


def _carry_out_batch(batch: tuple[Move, ...], world: World, done: Execution) -> None:
    checked = check(batch, world.clusters.partitions({m.topic for m in batch}))
    done.holds.extend(checked.holds)
    pending = [m for m in checked.moves if m.reorders and checked.facts[m.key].replicas != m.order]
    after: Mapping[PartitionKey, Partition] = checked.facts
    if pending:
        _require_lease(world)
        outcomes = world.leaders.reorder([Reorder(m.name, m.order) for m in pending])
        accepted = [m for m in pending if _accepted(m, outcomes.get(m.name), Reason.REORDER_REFUSED, done)]
        seen, after = _read_back(accepted, checked, world)
        done.reordered += sum(1 for m in accepted if seen[m.key] in (Seen.DONE, Seen.OVERTAKEN))
        _remember_displaced(accepted, seen, done)
        done.holds.extend(
            Hold(m.key, m.topic, Reason.NOT_APPLIED, SENTENCES[Reason.NOT_APPLIED])
            for m in accepted
            if seen[m.key] is Seen.NOT_APPLIED
        )
        amiss = [m for m in accepted if seen[m.key] in (Seen.TOUCHED, Seen.OVERTAKEN)]
        if amiss:
            _undo(amiss, seen, checked, world, done)
            return
    ready = [m for m in checked.moves if electable(m, after.get(m.key))]
    if ready:
        _require_lease(world)
        outcomes = world.leaders.elect([m.name for m in ready])
        done.elected += sum(_accepted(m, outcomes.get(m.name), Reason.ELECTION_REFUSED, done) for m in ready)


def _remember_displaced(accepted: list[Move], seen: Mapping[PartitionKey, Seen], done: Execution) -> None:
    """What stood once is contested when it does not stand at the next turn, however soon somebody overwrote it."""
    stands = {m.key for m in accepted if seen[m.key] is Seen.DONE}
    done.record = done.record.with_entries(
        {
            key: replace(entry, state=EntryState.DISPLACED)
            for key in stands
            if (entry := done.record.entries[key]).state is EntryState.INTENDED
        }
    )


def _read_back(
    sent: list[Move], checked: Checked, world: World
) -> tuple[dict[PartitionKey, Seen], Mapping[PartitionKey, Partition]]:
    """Read until every reorder shows, something is amiss, or patience ends: metadata trails the controller."""
    topics = {m.topic for m in checked.moves}
    for attempt in range(READ_BACK_TRIES):
        fresh = world.clusters.partitions(topics)
        by_name = {p.name: p for p in fresh}
        seen = {m.key: verify(m, checked.facts[m.key], by_name.get(m.name)) for m in sent}
        if Seen.NOT_APPLIED not in seen.values() or Seen.TOUCHED in seen.values():
            break
        if attempt + 1 < READ_BACK_TRIES:
            world.clock.sleep(READ_BACK_PAUSE_SECONDS)
    return seen, {p.key: p for p in fresh}


def _undo(
    amiss: list[Move], seen: Mapping[PartitionKey, Seen], checked: Checked, world: World, done: Execution
) -> None:
    """Cancel at once what our reorder set moving, name every partition concerned, and stop (law 1)."""
    touched = [m for m in amiss if seen[m.key] is Seen.TOUCHED]
    outcomes: Mapping[TopicPartition, Outcome] = {}
    if touched:
        outcomes = world.leaders.cancel([m.name for m in touched])
    now = {p.name: p for p in world.clusters.partitions({m.topic for m in amiss})}
    for move in amiss:
        before = sorted(checked.facts[move.key].replicas)
        after = now.get(move.name)
        if seen[move.key] is Seen.OVERTAKEN:
            text = "our reorder overtook a reassignment that somebody else started in the same moment; start it again"
        elif after is None:
            text = "the topic was deleted in the same moment"
        else:
            outcome = outcomes.get(move.name)
            undone = outcome is not None and outcome.ok
            text = (
                f"its replicas were {before} when checked and are {sorted(after.replicas)} now; "
                f"{'the reassignment was cancelled' if undone else 'there was nothing left to cancel'}"
            )
        done.touched.append(Hold(move.key, move.topic, Reason.REPLICA_SET_TOUCHED, text))
    done.stopped = Stop(Reason.REPLICA_SET_TOUCHED, _summary(done.touched))


def _require_lease(world: World) -> None:
    """A request is sent only while the Lease outlasts it (law 7)."""
    if world.leadership.seconds_left() <= world.leaders.request_timeout_seconds:
        raise Fenced(SENTENCES[Reason.LEASE_TOO_SHORT])


def _accepted(move: Move, outcome: Outcome | None, refused: Reason, done: Execution) -> bool:
    if outcome is None:
        done.holds.append(Hold(move.key, move.topic, refused, "Kafka's answer does not mention the partition"))
        return False
    if outcome.ok:
        return True
    text = f"{outcome.error}: {outcome.message}" if outcome.message else outcome.error
    done.holds.append(Hold(move.key, move.topic, refused, text))
    return False


def _summary(touched: Iterable[Hold]) -> str:
    named = [f"{h.topic}-{h.key.partition}: {h.message}" for h in touched]
    more = f" (and {len(named) - 3} more)" if len(named) > 3 else ""
    return "; ".join(named[:3]) + more
