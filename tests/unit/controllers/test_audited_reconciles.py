"""What a policy's loop puts into the audit trail, from a broker's fall to the policy's end."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.controllers.cluster_connection import ClusterConnection
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.session import Session
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.reporting.audit import AuditEntry
from bellwether.core.reporting.report import Report
from bellwether.core.signals import OverrideState, Reading
from bellwether.gather import Memory
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import Reorder
from testkit.messages import assert_wording
from testkit.simulation.fault_injection import Fate, Faults, Interruptions, Killed
from testkit.simulation.operator_fixture import MemoryOperator


@pytest.fixture
def operator() -> Iterator[MemoryOperator]:
    made = MemoryOperator(audited=True)
    made.site.well()
    yield made
    made.close()


def trail(operator: MemoryOperator) -> list[AuditEntry]:
    return ConfigMapAuditLog(operator.api, "default", "main", operator.site.clock).read()


def test_a_demotion_and_its_end_are_logged_with_reasons(operator: MemoryOperator):
    loop = operator.begin(promotion={"stabilizationSeconds": 1})
    assert trail(operator) == []
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    (fallen,) = trail(operator)
    assert [(c.broker, c.demoted, c.word) for c in fallen.changes] == [(1, True, "signals")]
    assert fallen.changes[0].evidence
    assert fallen.moves is not None
    assert fallen.moves.leaving == {1: 2}
    assert fallen.outcome is not None
    assert (fallen.outcome.reordered, fallen.outcome.elected) == (4, 2)

    operator.site.signals.say(1, Reading.PASSING)
    operator.step(loop, 6)
    risen = trail(operator)[1]
    assert [(c.broker, c.demoted, c.word) for c in risen.changes] == [(1, False, "signals")]
    assert risen.moves is not None
    assert risen.moves.restores == risen.moves.reorders == 4


def test_a_settled_cluster_writes_nothing_with_and_without_demotions(operator: MemoryOperator):
    loop = operator.make()
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 4)
    before = [m["metadata"]["resourceVersion"] for m in operator.api.all(CONFIG_MAPS)]
    operator.step(loop, 20, seconds=10)
    assert [m["metadata"]["resourceVersion"] for m in operator.api.all(CONFIG_MAPS)] == before


def test_an_override_is_logged_with_its_reason(operator: MemoryOperator):
    loop = operator.begin()
    operator.site.signals.override(2, OverrideState.DEMOTED, "its disk is replaced")
    operator.step(loop)
    (change,) = trail(operator)[0].changes
    assert (change.word, change.message) == ("override", "its disk is replaced")


def test_who_observes_moves_nothing_and_tells_nothing(operator: MemoryOperator):
    loop = operator.make(mode="Observe")
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 3)
    assert trail(operator) == []


def test_a_trail_that_cannot_be_written_holds_no_demotion(operator: MemoryOperator):
    loop = operator.begin()
    operator.api.refuse("create", CONFIG_MAPS, Terminal("quota"))
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    assert operator.site.cluster.snapshot().leaders()[1] == 0
    assert trail(operator) == []


def test_a_process_killed_in_the_middle_leaves_its_intent(operator: MemoryOperator):
    faults = Faults()

    def die() -> None:
        raise Killed

    faults.race("reorder", die)
    operator.faults = faults.around
    loop = operator.make()
    operator.site.signals.say(1, Reading.FAILING)
    with pytest.raises(Killed):
        operator.step(loop)
    (entry,) = trail(operator)
    assert entry.outcome is None
    assert entry.moves is not None


def test_end_of_a_policy_is_logged_and_the_trail_stays(operator: MemoryOperator):
    loop = operator.make()
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    operator.api.delete(POLICIES, "default", "main")
    operator.step(loop, 30)
    assert operator.api.find(POLICIES, "default", "main") is None
    last = trail(operator)[-1]
    assert_wording(last.occasion)
    assert "exported to default/bellwether-export-main." in last.occasion


@pytest.mark.parametrize("read_fails", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_late_order_is_undone_from_audit_trail_after_record_is_lost(
    operator: MemoryOperator, killed: bool, read_fails: bool, monkeypatch: pytest.MonkeyPatch
):
    faults, before = Faults(), replicas(operator)
    operator.faults = faults.around
    loop = operator.begin()
    operator.site.signals.override(1, OverrideState.DEMOTED)
    if killed:
        operator.faults = lambda world: Interruptions(2, before=True).around(world)
        loop = operator.loop()
        with pytest.raises(Killed):
            operator.step(loop)
    else:
        faults.fail_next("reorder", Fate.LATE)
        operator.step(loop)
    loop.release()
    orders = [one for entry in trail(operator) for one in entry.orders]
    assert len(orders) == (4 if killed else 2), "those that were not sent cannot arrive"
    for found in operator.api.all(CONFIG_MAPS):
        if found["metadata"]["name"].startswith("bellwether-undo"):
            operator.api.objects.pop(("configmaps", "default", found["metadata"]["name"]))
    operator.site.signals.lift(1)
    operator.faults = lambda world: world
    taken = operator.loop()
    if read_fails:
        with monkeypatch.context() as patch:
            patch.setattr(ConfigMapAuditLog, "read", Mock(side_effect=Transient("the API server does not answer")))
            operator.step(taken)
        taken.release()
        taken = operator.loop()
    operator.step(taken, 2)
    order(operator, {PartitionKey(one.topic_id, one.partition): one.order for one in orders})
    assert replicas(operator) != before
    operator.step(taken, 3)
    assert replicas(operator) == before


def replicas(operator: MemoryOperator) -> dict[PartitionKey, tuple[int, ...]]:
    return {p.key: p.replicas for p in operator.site.cluster.snapshot().partitions}


def order(operator: MemoryOperator, wanted: dict[PartitionKey, tuple[int, ...]]) -> None:
    found = [p for p in operator.site.cluster.snapshot().partitions if p.key in wanted]
    operator.site.process().leaders.reorder([Reorder(p.name, wanted[p.key]) for p in found])


def forgetful(session: Session, _: ClusterConnection, memory: Memory, __: Report) -> Memory:
    session.memory = memory
    return memory


def delete(operator: MemoryOperator, loop: PolicyController, seconds: float = 1) -> None:
    body = operator.api.get(POLICIES, "default", "main")
    operator.api.delete(POLICIES, "default", "main")
    if operator.api.find(POLICIES, "default", "main") is not None:
        body["metadata"]["deletionTimestamp"] = operator.site.clock.now().isoformat()
        operator.api.objects["leadershippolicies", "default", "main"]["metadata"] |= body["metadata"]
    for _ in range(60):
        operator.step(loop, 1, seconds)
        if operator.api.find(POLICIES, "default", "main") is None:
            return
    raise AssertionError("the policy is still there")


@pytest.mark.parametrize("noted", ["when it is settled", "at the deletion"])
def test_settled_orders_of_a_deleted_policy_are_not_undone(
    operator: MemoryOperator, noted: str, monkeypatch: pytest.MonkeyPatch
):
    faults, before = Faults(), replicas(operator)
    if noted == "at the deletion":  # the process before was killed between both writes
        monkeypatch.setattr(Session, "remember", forgetful)
    operator.faults = faults.around
    loop = operator.begin(promotion={"stabilizationSeconds": 1})
    operator.site.signals.override(1, OverrideState.DEMOTED)
    faults.fail_next("reorder", Fate.UNANSWERED)
    operator.step(loop, 4)
    moved = replicas(operator)
    assert moved != before
    operator.site.signals.lift(1)
    operator.step(loop, 300)
    assert replicas(operator) == before
    assert [entry.settled for entry in trail(operator)].count(True) == (noted == "when it is settled")
    delete(operator, loop)
    assert [entry.settled for entry in trail(operator)].count(True) == 1
    order(operator, moved)  # by a person
    recreated = operator.make()
    operator.step(recreated, 5)
    assert replicas(operator) == moved


@pytest.mark.parametrize("arrives", [True, False])
def test_export_of_deleted_policy_is_imported_with_late_orders(operator: MemoryOperator, arrives: bool):
    faults, before = Faults(), replicas(operator)
    operator.faults = faults.around
    loop = operator.begin(deletionTimeoutSeconds=5)
    operator.site.signals.say(1, Reading.FAILING)
    faults.fail_next("reorder", Fate.LATE if arrives else Fate.UNANSWERED)
    operator.step(loop, 1 if arrives else 300)
    delete(operator, loop, seconds=70)
    (export,) = [c for c in operator.api.all(CONFIG_MAPS) if c["metadata"]["name"].startswith("bellwether-export")]
    recreated = operator.make(suspend=True)
    operator.step(recreated, 2)
    records = ConfigMapRecords(operator.api, "default", "main")
    document = export["data"]["record.json"].encode()
    records.take_over(records.check_import(document).cluster_id)
    imported = records.import_record(document)
    assert imported.has_outstanding == arrives
    assert {key: entry.baseline for key, entry in imported.entries.items()}.items() <= before.items()


def test_deleted_policy_stays_until_its_late_orders_are_undone(operator: MemoryOperator):
    faults, before = Faults(), replicas(operator)
    operator.faults = faults.around
    loop = operator.make(deletionTimeoutSeconds=5)
    operator.step(loop)
    operator.site.signals.override(1, OverrideState.DEMOTED)
    faults.fail_next("reorder", Fate.LATE)
    operator.step(loop)
    operator.site.signals.lift(1)
    faults.fail_next("read", times=6)
    with pytest.raises(AssertionError, match="still there"):
        delete(operator, loop, seconds=2)
    faults.deliver()
    assert replicas(operator) != before
    faults.resumed = True
    delete(operator, loop, seconds=3)
    assert replicas(operator) == before
    assert [c for c in operator.api.all(CONFIG_MAPS) if c["metadata"]["name"].startswith("bellwether-export")] == []


def test_answered_orders_do_not_stay_in_audit_trail(operator: MemoryOperator):
    loop = operator.begin()
    operator.site.signals.override(1, OverrideState.DEMOTED)
    operator.step(loop, 2)
    assert [entry.orders for entry in trail(operator)] == [()]
