"""Choose the cure of a broker with slow writes, or that freezes: demotion, a held controlled shutdown, or neither.

In: verdicts that the cap admits, and the context with what was measured of followers. Out: which are demoted, which are
held, and why the leaders of others stay where they are. Called by ``decisions``. Demotion is taken where it adds no
loss, holding where ``acks=all`` waits for the broker (docs/internals/cures.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bellwether.core.detection.context import Context
from bellwether.core.detection.producer_acks import producer_acks
from bellwether.core.detection.storage import stalled_without_metadata_log
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.quarantine.hold_decision import Checks
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import FENCED_WITHIN_SECONDS, LEADING_LOST_SECONDS, STALLED_SECONDS
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
        if not _delays(verdict, checks):
            demoted.append(verdict)
            continue
        refusal = _refusal_to_hold(verdict, checks)
        # One that is cut off from clients as well serves none while it leads: it is held, or demoted.
        why = _loss_by_demotion(verdict.broker, checks) if verdict.reason in _WRITES else None
        if refusal is None and not context.policy.acts:
            text = f"it would be held in quarantine. {context.policy.inactivity}"
            held.append(BrokerHold(verdict.broker, Reason.NOT_ENFORCING, text))
        elif refusal is None:
            to_hold.append(verdict.broker)
        elif why is not None:
            held.append(BrokerHold(verdict.broker, Reason.NO_RELIEF, f"{why}; {refusal}"))
        else:
            demoted.append(verdict)
    return Cures(tuple(demoted), tuple(to_hold), tuple(held))


def _delays(verdict: Verdict, checks: Checks) -> bool:
    """Whether acks=all waits for a broker with slow writes, or that freezes, or may, as far as is known."""
    broker, cluster = verdict.broker, checks.snapshot.cluster
    measured = checks.snapshot.fault_tolerance is not None
    if not measured or producer_acks(checks) is ProducerAcks.ONE:
        return False
    if verdict.reason is Reason.FREEZING:
        return any(cluster.followed_in_sync_by(broker))
    if verdict.slow not in _WRITES:
        return False
    stalled = checks.stalled(broker)
    if not cluster.leader_counts[broker] and not stalled:
        return False  # nothing is elected: no client waits for more than before
    followed = [p for p in cluster.held_by(broker) if p.leader not in (broker, None)]
    left = sum(broker not in p.isr for p in followed)
    if followed and left >= LET_GO_SHARE * len(followed) and not stalled:
        return False  # Kafka lets it go (replica.lag.time.max.ms): what it leads follows, once it does not lead
    delays = checks.delays_acks_all(broker)
    return bool(followed) if delays is None else delays


def _loss_by_demotion(broker: int, checks: Checks) -> str | None:
    """Why demotion would make acks=all worse; None where what the broker leads is lost for acks=all as it is."""
    if not checks.snapshot.cluster.leader_counts[broker]:
        return None
    append_seconds = checks.append_seconds(broker)
    fenced = not stalled_without_metadata_log(checks.snapshot.signals_about.get(broker, ()))
    if fenced and STALLED_SECONDS <= append_seconds < FENCED_WITHIN_SECONDS:
        return (
            "an append to its log directory has not ended for seconds: Kafka fences a broker with a stalled disk only"
            " while it leads, and demoted it would stay in every ISR, where acks=all waits for it; it is demoted if it"
            f" is not fenced within {FENCED_WITHIN_SECONDS:.0f} s"
        )
    if append_seconds >= LEADING_LOST_SECONDS:
        return None
    if checks.delays_acks_all(broker) is None:
        return "whether it keeps up as a follower is unknown: its log ends could not be compared with its leaders'"
    waiting = sum(1 for _ in checks.snapshot.cluster.followed_in_sync_by(broker))
    return (
        "it does not keep up as a follower: demoted it would delay acks=all on every partition that it leads now, too"
        f" ({waiting} partitions wait for it already)"
    )


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
