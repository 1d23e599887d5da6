"""One policy's loop, step by step: standing by, claims, bad policies, troubles, and how long it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, EVENTS, LEASES, POLICIES
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import PolicyRefused
from bellwether.controllers.policy_finalizer import FINALIZER
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import EntryState
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.signals import OverrideState, Reading
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.ports.kafka import ClusterReader
from testkit.kubernetes.api_objects import kafka
from testkit.messages import assert_wording
from testkit.simulation.fault_injection import Faults
from testkit.simulation.operator_fixture import MemoryOperator

PACE = Requeue()


def sick(operator: MemoryOperator, broker: int = 1) -> None:
    operator.site.signals.say(broker, Reading.FAILING)


def test_the_first_step_adopts_the_policy_and_reports(operator: MemoryOperator):
    loop = operator.make()
    assert operator.step(loop) == PACE.idle_seconds
    assert operator.body()["metadata"]["finalizers"] == [FINALIZER]
    assert operator.condition()[:2] == ("True", "UpToDate")
    assert operator.condition("Connected")[0] == "True"
    assert operator.body()["status"]["clusterId"] == operator.site.cluster_id


def test_a_settled_policy_causes_no_write_at_all(operator: MemoryOperator):
    loop = operator.begin(2)
    operator.api.writes.clear()
    before = operator.site.cluster.mutations
    assert operator.step(loop, 5, seconds=10) == PACE.idle_seconds
    assert [w for w in operator.api.writes if " leases " not in w] == []
    assert operator.site.cluster.mutations == before


def test_a_sick_broker_loses_its_leaders_in_one_step_and_the_next_looks_at_once(operator: MemoryOperator):
    loop = operator.begin()
    sick(operator)
    assert operator.step(loop) == 0.0
    assert operator.site.cluster.snapshot().leaders()[1] == 0
    assert operator.step(loop) == PACE.busy_seconds
    assert operator.body()["status"]["displacedPartitions"] == 4


def test_a_recovering_broker_is_looked_at_when_its_time_comes(operator: MemoryOperator):
    loop = operator.make(promotion={"stabilizationSeconds": 3})
    sick(operator)
    operator.step(loop, 2)
    operator.site.signals.say(1, Reading.PASSING)
    assert operator.step(loop) == 3.0
    assert operator.step(loop) == 2.0


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"mode": "Observe"}, "NotEnforcing", id="Observe"),
        pytest.param({"suspend": True}, "NotEnforcing", id="suspended"),
    ],
)
def test_observing_policy_reports_and_moves_no_leader(operator: MemoryOperator, spec: dict[str, object], reason: str):
    loop = operator.make(**spec)
    sick(operator)
    before = operator.site.cluster.mutations
    operator.step(loop, 3)
    assert operator.site.cluster.mutations == before
    assert operator.condition()[1] == reason
    assert [w["brokerId"] for w in operator.body()["status"]["wouldDemote"]] == [1]


def test_a_process_that_does_not_hold_the_lease_stands_by_in_silence(operator: MemoryOperator):
    first = operator.make()
    operator.step(first)
    second = MemoryOperator(operator.site, operator.api, holder="operator-b")
    loop = second.loop()
    sick(operator)
    operator.api.writes.clear()
    assert second.step(loop) == PACE.lease_retry_seconds
    assert operator.api.writes == []
    assert loop.record is None


def test_a_process_that_stands_by_takes_over_when_the_other_leaves(operator: MemoryOperator):
    sick(operator)
    first = operator.make()
    operator.step(first, 2)
    first.release()
    second = MemoryOperator(operator.site, operator.api, holder="operator-b")
    loop = second.loop()
    try:
        second.step(loop, 2)
        assert loop.record is not None
        assert (loop.record.epoch, list(loop.record.demoted)) == (2, [1])
        assert second.condition()[:2] == ("True", "BrokerDemoted")
    finally:
        second.close()


def test_a_sick_broker_is_demoted_once_its_dwell_is_over(operator: MemoryOperator):
    loop = operator.make(demotion={"dwellSeconds": 3})
    sick(operator)
    assert operator.step(loop) == 3.0
    assert operator.step(loop) == 2.0
    assert loop.record is not None
    assert not loop.record.demoted
    operator.step(loop, 2)
    assert list(loop.record.demoted) == [1]


def test_a_flapping_broker_waits_longer_after_a_change_of_leader(operator: MemoryOperator):
    promotion = {"stabilizationSeconds": 5}
    first = operator.make(promotion=promotion)
    for _ in range(2):
        sick(operator)
        operator.step(first, 2)
        operator.site.signals.say(1, Reading.PASSING)
        operator.step(first, 20)
    sick(operator)
    operator.step(first, 2)
    first.release()
    second = MemoryOperator(operator.site, operator.api, holder="operator-b")
    try:
        loop = second.loop()
        operator.site.signals.say(1, Reading.PASSING)
        assert second.step(loop, 3) <= 5.0
        flapping = operator.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["flapping"]
        assert (flapping["demotions"], flapping["stabilizationSeconds"]) == (3, 20)
        second.step(loop, 15)
        assert loop.record is not None
        assert list(loop.record.demoted) == [1]
        second.step(loop, 6)
        assert not loop.record.demoted
    finally:
        second.close()


def test_the_grace_after_a_restart_is_carried_over_a_take_over(operator: MemoryOperator):
    first = operator.make()
    operator.step(first)
    operator.site.cluster.kill(1)
    operator.step(first)
    operator.site.cluster.revive(1)
    sick(operator)
    operator.step(first)
    first.release()
    second = MemoryOperator(operator.site, operator.api, holder="operator-b")
    try:
        loop = second.loop()
        second.step(loop, 5)
        verdict = operator.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["verdict"]
        assert verdict["reason"] == "Restarting"
        assert loop.record is not None
        assert not loop.record.demoted
        second.step(loop, 2, seconds=200)
        assert list(loop.record.demoted) == [1]
    finally:
        second.close()


def test_since_times_are_carried_over_a_take_over(operator: MemoryOperator):
    sick(operator)
    first = operator.make()
    operator.step(first, 2)
    healths = {h["metadata"]["name"]: h["status"]["verdict"] for h in operator.api.all(BROKER_HEALTHS)}
    first.release()
    operator.site.clock.advance(100)
    second = MemoryOperator(operator.site, operator.api, holder="operator-b")
    try:
        second.step(second.loop())
        assert {h["metadata"]["name"]: h["status"]["verdict"] for h in operator.api.all(BROKER_HEALTHS)} == healths
    finally:
        second.close()


def test_taking_over_a_settled_cluster_neither_asks_for_a_brokers_object_nor_writes_one(operator: MemoryOperator):
    first = operator.make()
    operator.step(first)
    first.release()
    second = MemoryOperator(
        operator.site, operator.api, holder="operator-b"
    )  # the first to see the objects' generations
    third = MemoryOperator(operator.site, operator.api, holder="operator-c")
    try:
        before = second.loop()
        second.step(before)
        before.release()
        operator.api.writes.clear()
        operator.api.refuse("get", BROKER_HEALTHS, Transient("they were listed"))
        assert third.step(third.loop()) == PACE.idle_seconds
        assert [w for w in operator.api.writes if "brokerhealths" in w] == []
    finally:
        second.close()
        third.close()


def test_a_second_policy_for_the_same_cluster_names_the_first(operator: MemoryOperator):
    operator.step(operator.make())
    other = operator.make("other")
    assert operator.step(other) == PACE.lease_retry_seconds
    status, reason, message = operator.condition(name="other")
    assert (status, reason) == ("False", "ClusterClaimed")
    assert "default/main" in message
    assert_wording(message)
    assert operator.condition()[:2] == ("True", "UpToDate")


def test_another_cluster_behind_the_bootstrap_is_refused_with_both_ids(operator: MemoryOperator):
    loop = operator.make()
    operator.connector.trouble = PolicyRefused(Reason.CLUSTER_CHANGED, "they lead to X, and this policy is pinned to Y")
    assert operator.step(loop) == PACE.retry_seconds
    assert_wording(operator.condition())


def test_retries_are_spread_so_that_many_policies_do_not_come_back_together(operator: MemoryOperator):
    loop = operator.make()
    loop._requeue = Requeue(jitter=lambda seconds: seconds / 4)
    operator.connector.trouble = Transient("no answer from kafka:9092")
    assert operator.step(loop) == PACE.retry_seconds / 4


@pytest.mark.parametrize("trouble", [Transient("no answer from kafka:9092"), Terminal("kafka:9092: not a broker")])
def test_a_cluster_that_cannot_be_reached_is_said_and_tried_again(operator: MemoryOperator, trouble: Exception):
    loop = operator.make()
    operator.connector.trouble = trouble  # type: ignore[assignment]
    assert operator.step(loop) == PACE.retry_seconds
    assert operator.condition() == ("False", "ClusterUnreachable", str(trouble))
    assert "Stalled" not in {one["type"] for one in operator.body()["status"]["conditions"]}
    assert operator.condition("Connected")[0] == "False"
    operator.connector.trouble = None
    operator.step(loop)
    assert operator.condition()[:2] == ("True", "UpToDate")


class Refusing:
    """A reader whose credentials are refused from the second read on."""

    def __init__(self, inner: ClusterReader) -> None:
        self.inner = inner
        self.reads = 0

    def read(self) -> Cluster:
        self.reads += 1
        if self.reads > 1:
            raise Terminal("authentication failed: correct the password")
        return self.inner.read()

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        pytest.param(None, "authentication failed: correct the password", id="its Secrets can be read"),
        pytest.param(Terminal("Secret kafka-user is gone"), "Secret kafka-user is gone", id="its Secret is gone"),
        pytest.param(Transient("the API is away"), "the API is away", id="its Secrets are unknown"),
    ],
)
def test_refused_credentials_are_read_again_and_said(
    operator: MemoryOperator, trouble: BellwetherError | None, message: str
):
    operator.faults = lambda world: replace(world, clusters=Refusing(world.clusters))  # type: ignore[arg-type]
    loop = operator.begin()
    operator.connector.trouble = trouble
    assert operator.step(loop) == PACE.retry_seconds
    assert operator.connector.renewed == 1
    assert operator.condition() == ("False", "ClusterUnreachable", message)


def test_a_standby_process_reports_none_of_its_own_errors(operator: MemoryOperator):
    loop = operator.make()
    operator.connector.trouble, operator.connector.led_by_another = Transient("no answer"), True
    operator.api.writes.clear()
    assert operator.step(loop) == PACE.retry_seconds
    assert operator.api.writes == []


def test_a_record_that_cannot_be_taken_over_is_said(operator: MemoryOperator):
    operator.api.refuse("list", CONFIG_MAPS, Terminal("not allowed to get or list configmaps"))
    loop = operator.make()
    assert operator.step(loop) == PACE.retry_seconds
    assert_wording(operator.condition())


def test_a_reconcile_without_an_answer_is_said_and_tried_again(operator: MemoryOperator):
    faults = Faults()
    operator.faults = faults.around
    loop = operator.begin()
    faults.fail_next("read")
    assert operator.step(loop) == PACE.retry_seconds
    assert operator.condition()[1] == "NoAnswer"
    assert operator.condition("Connected")[0] == "Unknown"
    operator.step(loop)
    assert operator.condition()[1] == "UpToDate"


def test_an_invalid_policy_has_its_field_in_the_condition(operator: MemoryOperator):
    loop = operator.make(demotion={"maxBrokers": 0})
    assert operator.step(loop) == PACE.idle_seconds
    status, reason, message = operator.condition()
    assert (status, reason) == ("False", "InvalidPolicy")
    assert "spec.demotion.maxBrokers" in message
    assert operator.condition("Stalled") == ("True", reason, message)


def test_the_same_trouble_is_written_once(operator: MemoryOperator):
    loop = operator.begin(1, demotion={"maxBrokers": 0})
    operator.api.writes.clear()
    operator.step(loop, 5)
    assert operator.api.writes == []


def test_a_corrected_policy_is_reconciled_again(operator: MemoryOperator):
    loop = operator.begin(demotion={"maxBrokers": 0})
    operator.change(demotion={"maxBrokers": 1})
    operator.step(loop)
    assert operator.condition()[:2] == ("True", "UpToDate")
    assert "Stalled" not in {one["type"] for one in operator.body()["status"]["conditions"]}


def test_another_connection_makes_another_link(operator: MemoryOperator):
    loop = operator.begin(2)
    assert operator.connector.linked == 1
    operator.change(kafka=kafka(bootstrapServers=["other.example:9092"]))
    operator.step(loop)
    assert operator.connector.linked == 2


def test_a_fenced_process_drops_its_memory_and_starts_again(operator: MemoryOperator):
    loop = operator.begin()
    before = loop.record
    # Another writer has the record: the shards carry another epoch.
    thief = MemoryOperator(operator.site, operator.api, holder="thief").connector.link
    assert before is not None
    sick(operator)
    thief(LeadershipPolicy.read(operator.body())).records.take_over(operator.site.cluster_id)
    mutations = operator.site.cluster.mutations
    assert operator.step(loop) == 0.0
    assert (loop.record, operator.site.cluster.mutations) == (None, mutations)
    operator.step(loop)
    assert loop.record is not None
    assert loop.record.epoch == 3


def test_a_settled_policy_hears_of_a_record_that_a_person_took_over(operator: MemoryOperator):
    loop = operator.begin(2)
    ConfigMapRecords(operator.api, "default", "main").take_over(operator.site.cluster_id)
    assert operator.step(loop) == 0.0
    operator.step(loop)
    assert loop.record is not None
    assert loop.record.epoch == 3


def test_an_api_that_is_away_stops_new_moves_and_nothing_is_lost(operator: MemoryOperator):
    loop = operator.begin()
    sick(operator)
    operator.api.refuse("replace", CONFIG_MAPS, Transient("the API is away"))
    before = operator.site.cluster.mutations
    operator.step(loop)
    assert operator.site.cluster.mutations == before
    assert operator.condition()[1] == "RecordUnavailable"
    operator.api.refuse("replace", CONFIG_MAPS, None)
    operator.step(loop)
    assert operator.site.cluster.snapshot().leaders()[1] == 0


def test_news_that_cannot_be_written_do_not_hold_a_demotion_up(operator: MemoryOperator):
    loop = operator.begin()
    sick(operator)
    for resource in (POLICIES, EVENTS):
        operator.api.refuse("apply", resource, Transient("away"))
    operator.step(loop)
    assert operator.site.cluster.snapshot().leaders()[1] == 0


def test_a_persons_override_reaches_the_reconcile(operator: MemoryOperator):
    loop = operator.make()
    operator.site.signals.override(2, OverrideState.DEMOTED, "disk swap")
    operator.step(loop)
    assert loop.record is not None
    assert list(loop.record.demoted) == [2]
    assert {e.state for e in loop.record.entries.values()} == {EntryState.DISPLACED}


def test_the_lease_of_a_cluster_is_in_the_operators_namespace(operator: MemoryOperator):
    operator.step(operator.make())
    (lease,) = operator.api.all(LEASES)
    assert (lease["metadata"]["namespace"], lease["spec"]["holderIdentity"]) == ("operators", "operator-a")
    operator.close()
    assert operator.api.all(LEASES)[0]["spec"]["holderIdentity"] == ""


def test_a_defect_in_one_reconcile_neither_ends_the_loop_nor_keeps_the_lease(operator: MemoryOperator):
    loop = operator.make()
    calls = []

    def step() -> float:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a defect")
        return -1.0

    loop.step = step  # type: ignore[method-assign]
    loop.wait = lambda _: False  # type: ignore[method-assign, assignment]
    loop.run()
    assert len(calls) == 2
    assert operator.connector.closed == 1
    assert operator.metrics.registry.get_sample_value(
        "bellwether_reconcile_errors_total", {"namespace": "default", "policy": "main", "kind": "Defect"}
    )
