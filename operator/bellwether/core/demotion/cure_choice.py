"""Choose the cure of a broker with slow writes: demotion, a held controlled shutdown, or neither.

In: verdicts that the cap admits, and the context with what was measured of followers. Out: which are demoted, which are
held, and why the leaders of others stay where they are. Called by ``decisions``. Demotion ends what acks=1 and readers
lose. It ends nothing of what acks=all loses while the broker stays in the ISR, and adds to it what the broker led
(``make bench-cures``, docs/internals/cures.md): so it is taken where the broker keeps up as a follower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.quarantine.pause_decision import Checks
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import ProducerAcks, QuarantineMode

LET_GO_SHARE = 0.5
"""Share of the partitions that a broker follows from which on Kafka lets it go: then demotion ends the loss."""

_WRITES = frozenset({Reason.STORAGE_SLOW, Reason.LOG_DIR_SLOW})


@dataclass(frozen=True)
class Cures:
    """What becomes of admitted brokers; ``held`` has those of which the leaders stay where they are."""

    demoted: tuple[Verdict, ...] = ()
    to_hold: tuple[int, ...] = ()
    held: tuple[BrokerHold, ...] = ()


def choose_cures(admitted: Iterable[Verdict], kept: Mapping[int, DemotedBroker], context: Context) -> Cures:
    """The cure of each broker. ``kept`` are the brokers that stay demoted."""
    demoted, to_hold, held = list[Verdict](), list[int](), list[BrokerHold]()
    checks = Checks(context.snapshot, context.verdicts, context.policy, kept)
    for verdict in admitted:
        why = loss_by_demotion(verdict, checks)
        if why is None:
            demoted.append(verdict)
            continue
        refusal = _refusal_to_hold(verdict, checks)
        if refusal is None:
            to_hold.append(verdict.broker)
        elif verdict.reason in _WRITES:
            held.append(BrokerHold(verdict.broker, Reason.NO_RELIEF, f"{why}; {refusal}"))
        else:  # cut off from clients as well: they lose everything while it leads
            demoted.append(verdict)
    return Cures(tuple(demoted), tuple(to_hold), tuple(held))


def loss_by_demotion(verdict: Verdict, checks: Checks) -> str | None:
    """Why demotion would make acks=all worse; None where it would not, or where writes are not slow."""
    broker, cluster, tolerance = verdict.broker, checks.snapshot.cluster, checks.snapshot.fault_tolerance
    if verdict.slow not in _WRITES or tolerance is None:
        return None
    if checks.policy.demotion.producer_acks is ProducerAcks.ONE:
        return None
    held = list(cluster.held_by(broker))
    if not any(p.leader == broker for p in held):
        return None  # nothing is elected: no client waits for more than before
    if checks.stalled(broker):
        return (
            "an append to its log directory has not ended for seconds: Kafka fences a broker with a stalled disk only"
            " while it leads, and demoted it would stay in every ISR, where acks=all waits for it"
        )
    followed = [p for p in held if p.leader not in (broker, None)]
    left = sum(broker not in p.isr for p in followed)
    if followed and left >= LET_GO_SHARE * len(followed):
        return None  # Kafka lets it go (replica.lag.time.max.ms): what it leads follows, once it does not lead
    delays = checks.delays_acks_all(broker)
    if delays:
        return (
            "it does not keep up as a follower: demoted it would delay acks=all on every partition that it leads now,"
            f" too ({sum(broker in p.isr for p in followed)} partitions wait for it already)"
        )
    if delays is None and followed:
        return "whether it keeps up as a follower is unknown: its log ends could not be compared with its leaders'"
    return None


def _refusal_to_hold(verdict: Verdict, checks: Checks) -> str | None:
    """Why the broker is not held, with the remedy; None if it is."""
    if checks.policy.quarantine.mode is QuarantineMode.OFF:
        return (
            "no quarantine is configured (spec.quarantine.mode and the quarantine agent): stop the broker in a"
            " controlled way and keep it stopped until its disk is well; on Kubernetes cordon its node first, as a"
            " deleted pod comes back"
        )
    refusal = checks.refusal(verdict.broker, checks.snapshot.quarantine_orders)
    return None if refusal is None else f"it is not held in quarantine: {refusal.message}"
