"""What an operator wrote to status is what the next one, and every command that plans as it does, goes on with."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.harm_history import HarmCause, HarmHistory
from bellwether.core.model.undo_record import Sender
from bellwether.core.signals import OverrideState
from bellwether.gather import Memory
from testkit.simulation.fault_injection import Fate, Faults
from testkit.simulation.operator_fixture import LEASE_SECONDS, MemoryOperator
from testkit.simulation.operators import restored
from testkit.values.builders import START, record, said, snapshot, verdict

STORED = Memory(
    record(),
    {b: verdict(b, HealthState.SICK if b == 1 else HealthState.HEALTHY) for b in (1, 2, 3)},
    flaps={1: FlapCounter(2, START)},
    elections=(1.5, 2.0),
    harm_history=HarmHistory({HarmCause.REACHABILITY: (3.0,)}),
    hosts=KnownHosts({1: ("broker-1", "b1.example"), 2: ("broker-2",), 3: ("broker-3",)}),
)
"""All that status and the undo record have."""

ELSEWHERE = {
    "quarantine_orders": "their Leases",
    "grace_seconds": "the time-out of the connection",
    "arrival_seconds": "Kafka's own limit",
    "distrusted": "a command's arguments",
}
READ_AGAIN = {"checks", "clock", "floors", "log_dirs", "known_good", "rankings", "recovered", "report", "rounds"}
"""What a new process reads, counts or computes again; good seconds are also in the verdict."""

FORGOTTEN = {"refused", "overwritten", "unseen_elections"}
"""What is learned again by asking Kafka again, or only counted."""


def read_back() -> Memory:
    """The memory from a status that an operator with the memory ``STORED`` wrote."""
    seen = replace(snapshot(), flaps=STORED.flaps, harm_history=STORED.harm_history, hosts=STORED.hosts.hosts)
    return restored(STORED.record, said(seen, judged=STORED.verdicts, elections=STORED.elections))


def test_every_stored_field_of_memory_is_read_back() -> None:
    names = {one.name for one in fields(Memory)} - ELSEWHERE.keys() - READ_AGAIN - FORGOTTEN
    assert {name: getattr(read_back(), name) for name in names} == {name: getattr(STORED, name) for name in names}


def test_no_stored_field_of_memory_has_its_default_in_the_test() -> None:
    names = {one.name for one in fields(Memory)} - ELSEWHERE.keys() - READ_AGAIN - FORGOTTEN
    default = Memory(record(epoch=7))
    assert [name for name in sorted(names) if getattr(STORED, name) == getattr(default, name)] == []


@pytest.mark.parametrize("released", [False, True])
def test_orders_of_unreleased_lease_are_shown_as_unsettled(released: bool) -> None:
    faults, old = Faults(), MemoryOperator.well()
    old.sender, new_sender = (Sender(f"ops/{pod}", pod, "operator", "node", "boot", START) for pod in ("old", "new"))
    old.faults = faults.around
    loop = old.begin()
    old.site.signals.override(1, OverrideState.DEMOTED)
    faults.fail_next("reorder", Fate.UNANSWERED)
    old.step(loop)
    if released:
        loop.release()
    new = MemoryOperator(old.site, old.api, holder="operator-b", sender=new_sender)
    taken = new.loop()
    new.step(taken, seconds=3 * LEASE_SECONDS)  # the first only sees whether the Lease is renewed
    new.step(taken, 3)
    shown = {c["type"]: c["reason"] for c in new.body()["status"]["conditions"]}
    assert shown.get("OrdersSettled") == (None if released else "SenderMayRun")
    assert taken.record is not None
    assert taken.record.has_outstanding
    assert [one.uid for one in taken.record.senders] == (["new"] if released else ["old", "new"])
    assert ConfigMapRecords(new.api, "default", "main").read() == taken.record
    new.close()
