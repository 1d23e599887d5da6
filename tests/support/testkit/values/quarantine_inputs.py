"""Scenes of quarantine: broker 1 is demoted for its slow disk, follows everywhere, and has a agent next to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.quarantine.hold_decision import QuarantineDecisions, decide_quarantines
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Mode, Policy, Quarantine, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal, SignalType
from bellwether.simulation.memory_world import START
from testkit.values.builders import after, cluster, decisions, partition, record, verdicts

GOOD, BAD, SILENT = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN
NOW = after(300)
CONTROLLERS = Quorum(frozenset({101, 102, 103}), frozenset({101, 102, 103}))
SLOW = frozenset({1, 2})
AMPLE = FaultTolerance({"orders": 1}, CONTROLLERS, trailing=SLOW)


def opted_in(**settings: int) -> Policy:
    """A policy that quarantines and enforces."""
    return Policy(name="main", mode=Mode.ENFORCE, quarantine=Quarantine(mode=QuarantineMode.ENABLED, **settings))


def disk(broker: int = 1, reading: Reading = BAD, age: float | None = 0.0) -> Signal:
    """The word of the prober on a broker's disk."""
    return Signal(broker, SignalType.STORAGE_LATENCY, f"broker-{broker}", reading, START, age)


def agent(broker: int = 1, reading: Reading = GOOD, number: int = 0, age: float | None = 0.0) -> Signal:
    """The signal of the quarantine agent next to a broker: on watch by default."""
    return Signal(
        broker, QUARANTINE_AGENT, f"broker-{broker}", reading, START, age, message="so it says", value=float(number)
    )


def ordered(
    broker: int = 1,
    number: int = 1,
    *,
    since: datetime = START,
    until: datetime | None = None,
    renewed_at: datetime = NOW,
    held_at: datetime | None = None,
    ended_at: datetime | None = None,
    reason: Reason = Reason.QUARANTINE_PENDING,
) -> QuarantineOrder:
    """An order that was not seen to be obeyed yet."""
    end = until or after(600)
    return QuarantineOrder(broker, 1, number, since, end, renewed_at, reason, "so it was", held_at, ended_at)


def held_in(seen: Cluster, slow: int = 1, **standings: Sequence[int]) -> dict[int, Verdict]:
    """Every broker is healthy but for the slow one."""
    judged = verdicts(seen, **{"sick": [slow], **standings})
    judged[slow] = replace(judged[slow], slow=Reason.STORAGE_SLOW, reason=Reason.STORAGE_SLOW)
    return judged


def scene(
    seen: Cluster | None = None,
    *signals: Signal,
    orders: Sequence[QuarantineOrder] = (),
    margins: FaultTolerance | None = AMPLE,
    now: datetime = NOW,
) -> Snapshot:
    """Broker 2 leads, broker 1 follows slowly, its prober and its quarantine agent report."""
    facts = seen or cluster(partition(replicas=(2, 3, 1)))
    said = signals or (disk(), agent())
    named: Mapping[int, QuarantineOrder] = {c.broker: c for c in orders}
    return Snapshot(now, facts, record(), said, quarantine_orders=named, fault_tolerance=margins)


def weighed(
    facts: Snapshot | None = None,
    policy: Policy | None = None,
    judged: Mapping[int, Verdict] | None = None,
    demoted: Sequence[int] = (1,),
    to_hold: Sequence[int] = (),
) -> QuarantineDecisions:
    """What becomes of a scene."""
    at_hand = facts or scene()
    verdicts_ = judged if judged is not None else held_in(at_hand.cluster)
    context = Context(at_hand, verdicts_, policy or opted_in())
    return decide_quarantines(context, decisions(*demoted).demoted, to_hold)
