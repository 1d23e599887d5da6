"""What an operator wrote to status is what the next one, and every command that plans as it does, goes on with."""

from __future__ import annotations

from dataclasses import fields, replace

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus
from bellwether.controllers.reporting.status import broker_status, policy_status
from bellwether.controllers.restored_memory import restored_memory
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.flap_damping import FlapCounter
from bellwether.core.model.harm_history import HarmCause, HarmHistory
from bellwether.gather import Memory
from testkit.kubernetes import api_objects
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

FORGOTTEN = {"refused", "overwritten"}
"""What is learned again by asking Kafka again."""


def restored() -> Memory:
    """The memory from a status that an operator with the memory ``STORED`` wrote."""
    seen = replace(snapshot(), flaps=STORED.flaps, harm_history=STORED.harm_history, hosts=STORED.hosts.hosts)
    report = said(seen, judged=STORED.verdicts, elections=STORED.elections)
    status = LeadershipPolicyStatus.model_validate(policy_status(report, 1, {}, None))
    statuses = {one.broker: broker_status(one, 1, {}, START) for one in report.brokers}
    healths = [BrokerHealth.read({**api_objects.health(b), "status": status}) for b, status in statuses.items()]
    return restored_memory(STORED.record, status, healths)


def test_every_stored_field_of_memory_is_restored() -> None:
    names = {one.name for one in fields(Memory)} - ELSEWHERE.keys() - READ_AGAIN - FORGOTTEN
    assert {name: getattr(restored(), name) for name in names} == {name: getattr(STORED, name) for name in names}


def test_no_stored_field_of_memory_has_its_default_in_the_test() -> None:
    names = {one.name for one in fields(Memory)} - ELSEWHERE.keys() - READ_AGAIN - FORGOTTEN
    default = Memory(record(epoch=7))
    assert [name for name in sorted(names) if getattr(STORED, name) == getattr(default, name)] == []
