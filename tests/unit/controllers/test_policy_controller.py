"""One policy's loop, step by step: standing by, claims, bad policies, troubles, and how long it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, EVENTS, LEASES, POLICIES
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import PolicyRefused
from bellwether.controllers.deletion.finalizer import FINALIZER
from bellwether.controllers.requeue import Requeue
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import EntryState
from bellwether.core.reasons import Reason
from bellwether.core.signals import OverrideState, Reading
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.ports.kafka import ClusterReader
from bellwether.testing.fault_injection import Faults
from testkit.apiobjects import kafka
from testkit.offices import Office

PACE = Requeue()


def sick(office: Office, broker: int = 1) -> None:
    office.site.signals.say(broker, Reading.FAILING)


def test_the_first_step_adopts_the_policy_and_reports(office: Office):
    loop = office.make()
    assert office.step(loop) == PACE.idle_seconds
    assert office.body()["metadata"]["finalizers"] == [FINALIZER]
    assert office.condition()[:2] == ("True", "Settled")
    assert office.condition("Connected")[0] == "True"
    assert office.body()["status"]["clusterId"] == office.site.cluster_id


def test_a_settled_policy_causes_no_write_at_all(office: Office):
    loop = office.make()
    office.step(loop, 2)
    office.api.writes.clear()
    before = office.site.cluster.mutations
    assert office.step(loop, 5, seconds=10) == PACE.idle_seconds
    assert [w for w in office.api.writes if " leases " not in w] == []
    assert office.site.cluster.mutations == before


def test_a_sick_broker_loses_its_leaders_in_one_step_and_the_next_looks_at_once(office: Office):
    loop = office.make()
    office.step(loop)
    sick(office)
    assert office.step(loop) == 0.0
    assert office.site.cluster.snapshot().leaders()[1] == 0
    assert office.step(loop) == PACE.busy_seconds
    assert office.body()["status"]["displacedPartitions"] == 4


def test_a_recovering_broker_is_looked_at_when_its_time_comes(office: Office):
    loop = office.make(promotion={"stabilizationSeconds": 3})
    sick(office)
    office.step(loop, 2)
    office.site.signals.say(1, Reading.PASSING)
    assert office.step(loop) == 3.0
    assert office.step(loop) == 2.0


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"mode": "Observe"}, "Observing", id="Observe"),
        pytest.param({"suspend": True}, "Suspended", id="suspended"),
    ],
)
def test_who_only_watches_reports_and_moves_nobody(office: Office, spec: dict[str, object], reason: str):
    loop = office.make(**spec)
    sick(office)
    before = office.site.cluster.mutations
    office.step(loop, 3)
    assert office.site.cluster.mutations == before
    assert office.condition()[1] == reason
    assert [w["brokerId"] for w in office.body()["status"]["wouldDemote"]] == [1]


def test_a_process_that_does_not_hold_the_lease_stands_by_in_silence(office: Office):
    first = office.make()
    office.step(first)
    second = Office(office.site, office.api, holder="operator-b")
    loop = second.loop()
    sick(office)
    office.api.writes.clear()
    assert second.step(loop) == PACE.lease_retry_seconds
    assert office.api.writes == []
    assert loop.record is None


def test_a_process_that_stands_by_takes_over_when_the_other_leaves(office: Office):
    sick(office)
    first = office.make()
    office.step(first, 2)
    first.release()
    second = Office(office.site, office.api, holder="operator-b")
    loop = second.loop()
    try:
        second.step(loop, 2)
        assert loop.record is not None
        assert (loop.record.epoch, list(loop.record.demoted)) == (2, [1])
        assert second.condition()[:2] == ("True", "Settled")
    finally:
        second.close()


def test_a_broker_that_has_turned_sick_is_demoted_when_its_dwell_is_over(office: Office):
    loop = office.make(demotion={"dwellSeconds": 3})
    sick(office)
    assert office.step(loop) == 3.0
    assert office.step(loop) == 2.0
    assert loop.record is not None
    assert not loop.record.demoted
    office.step(loop, 2)
    assert list(loop.record.demoted) == [1]


def test_a_broker_that_flaps_must_stay_well_for_longer_whoever_leads(office: Office):
    promotion = {"stabilizationSeconds": 5, "flapWindowSeconds": 600}
    first = office.make(promotion=promotion)
    for _ in range(2):
        sick(office)
        office.step(first, 2)
        office.site.signals.say(1, Reading.PASSING)
        office.step(first, 20)
    sick(office)
    office.step(first, 2)
    first.release()
    second = Office(office.site, office.api, holder="operator-b")
    try:
        loop = second.loop()
        office.site.signals.say(1, Reading.PASSING)
        assert second.step(loop, 3) <= 5.0
        flapping = office.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["flapping"]
        assert (flapping["demotions"], flapping["stabilizationSeconds"]) == (3, 20)
        second.step(loop, 15)
        assert loop.record is not None
        assert list(loop.record.demoted) == [1]
        second.step(loop, 6)
        assert not loop.record.demoted
    finally:
        second.close()


def test_the_grace_after_a_restart_is_carried_over_a_take_over(office: Office):
    first = office.make()
    office.step(first)
    office.site.cluster.kill(1)
    office.step(first)
    office.site.cluster.revive(1)
    sick(office)
    office.step(first)
    first.release()
    second = Office(office.site, office.api, holder="operator-b")
    try:
        loop = second.loop()
        second.step(loop, 5)
        verdict = office.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["verdict"]
        assert verdict["reason"] == "Starting"
        assert loop.record is not None
        assert not loop.record.demoted
        second.step(loop, 2, seconds=200)
        assert list(loop.record.demoted) == [1]
    finally:
        second.close()


def test_since_times_are_carried_over_a_take_over(office: Office):
    sick(office)
    first = office.make()
    office.step(first, 2)
    healths = {h["metadata"]["name"]: h["status"]["verdict"] for h in office.api.all(BROKER_HEALTHS)}
    first.release()
    office.site.clock.advance(100)
    second = Office(office.site, office.api, holder="operator-b")
    try:
        second.step(second.loop())
        assert {h["metadata"]["name"]: h["status"]["verdict"] for h in office.api.all(BROKER_HEALTHS)} == healths
    finally:
        second.close()


def test_taking_over_a_settled_cluster_neither_asks_for_a_brokers_object_nor_writes_one(office: Office):
    first = office.make()
    office.step(first)
    first.release()
    second = Office(office.site, office.api, holder="operator-b")  # the first to be told of the objects' generations
    third = Office(office.site, office.api, holder="operator-c")
    try:
        before = second.loop()
        second.step(before)
        before.release()
        office.api.writes.clear()
        office.api.refuse("get", BROKER_HEALTHS, Transient("they were listed"))
        assert third.step(third.loop()) == PACE.idle_seconds
        assert [w for w in office.api.writes if "brokerhealths" in w] == []
    finally:
        second.close()
        third.close()


def test_a_second_policy_for_the_same_cluster_is_told_who_has_it(office: Office):
    office.step(office.make())
    other = office.make("other")
    assert office.step(other) == PACE.lease_retry_seconds
    status, reason, message = office.condition(name="other")
    assert (status, reason) == ("False", "ClusterClaimed")
    assert "default/main" in message
    assert "delete one of the two" in message
    assert office.condition()[:2] == ("True", "Settled")


def test_another_cluster_behind_the_bootstrap_is_refused_with_both_ids(office: Office):
    loop = office.make()
    office.connector.trouble = PolicyRefused(Reason.CLUSTER_CHANGED, "they lead to X, and this policy is pinned to Y")
    assert office.step(loop) == PACE.retry_seconds
    assert office.condition() == ("False", "ClusterChanged", "they lead to X, and this policy is pinned to Y")


@pytest.mark.parametrize("trouble", [Transient("no answer from kafka:9092"), Terminal("kafka:9092: not a broker")])
def test_a_cluster_that_cannot_be_reached_is_said_and_tried_again(office: Office, trouble: Exception):
    loop = office.make()
    office.connector.trouble = trouble  # type: ignore[assignment]
    assert office.step(loop) == PACE.retry_seconds
    assert office.condition() == ("False", "ClusterUnreachable", str(trouble))
    assert "Stalled" not in {one["type"] for one in office.body()["status"]["conditions"]}
    assert office.condition("Connected")[0] == "False"
    office.connector.trouble = None
    office.step(loop)
    assert office.condition()[:2] == ("True", "Settled")


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
        pytest.param(Transient("the API is away"), "the API is away", id="nobody can say what its Secrets are"),
    ],
)
def test_refused_credentials_are_read_again_and_said(office: Office, trouble: BellwetherError | None, message: str):
    office.faults = lambda world: replace(world, clusters=Refusing(world.clusters))  # type: ignore[arg-type]
    loop = office.make()
    office.step(loop)
    office.connector.trouble = trouble
    assert office.step(loop) == PACE.retry_seconds
    assert office.connector.renewed == 1
    assert office.condition() == ("False", "ClusterUnreachable", message)


def test_whoever_stands_by_says_nothing_of_its_own_trouble(office: Office):
    loop = office.make()
    office.connector.trouble, office.connector.led_by_another = Transient("no answer"), True
    office.api.writes.clear()
    assert office.step(loop) == PACE.retry_seconds
    assert office.api.writes == []


def test_a_record_that_cannot_be_taken_over_is_said(office: Office):
    office.api.refuse("list", CONFIG_MAPS, Terminal("not allowed to get or list configmaps"))
    loop = office.make()
    assert office.step(loop) == PACE.retry_seconds
    assert office.condition() == ("False", "RecordUnavailable", "not allowed to get or list configmaps")


def test_a_turn_without_an_answer_is_said_and_tried_again(office: Office):
    faults = Faults()
    office.faults = faults.around
    loop = office.make()
    office.step(loop)
    faults.fail_next("read")
    assert office.step(loop) == PACE.retry_seconds
    assert office.condition()[1] == "NoAnswer"
    assert office.condition("Connected")[0] == "Unknown"
    office.step(loop)
    assert office.condition()[1] == "Settled"


def test_a_policy_that_cannot_be_understood_is_told_which_field(office: Office):
    loop = office.make(demotion={"maxBrokers": 0})
    assert office.step(loop) == PACE.idle_seconds
    status, reason, message = office.condition()
    assert (status, reason) == ("False", "InvalidPolicy")
    assert "spec.demotion.maxBrokers" in message
    assert office.condition("Stalled") == ("True", reason, message)


def test_the_same_trouble_is_written_once(office: Office):
    loop = office.make(demotion={"maxBrokers": 0})
    office.step(loop, 1)
    office.api.writes.clear()
    office.step(loop, 5)
    assert office.api.writes == []


def test_a_mended_policy_goes_on(office: Office):
    loop = office.make(demotion={"maxBrokers": 0})
    office.step(loop)
    office.change(demotion={"maxBrokers": 1})
    office.step(loop)
    assert office.condition()[:2] == ("True", "Settled")
    assert "Stalled" not in {one["type"] for one in office.body()["status"]["conditions"]}


def test_another_connection_makes_another_link(office: Office):
    loop = office.make()
    office.step(loop, 2)
    assert office.connector.linked == 1
    office.change(kafka=kafka(bootstrapServers=["other.example:9092"]))
    office.step(loop)
    assert office.connector.linked == 2


def test_whoever_is_fenced_forgets_everything_and_starts_anew(office: Office):
    loop = office.make()
    office.step(loop)
    before = loop.record
    # Another writer has the record: the shards carry another epoch.
    thief = Office(office.site, office.api, holder="thief").connector.link
    assert before is not None
    sick(office)
    thief(LeadershipPolicy.read(office.body())).records.take_over(office.site.cluster_id)
    mutations = office.site.cluster.mutations
    assert office.step(loop) == 0.0
    assert (loop.record, office.site.cluster.mutations) == (None, mutations)
    office.step(loop)
    assert loop.record is not None
    assert loop.record.epoch == 3


def test_a_settled_policy_hears_of_a_record_that_a_person_took_over(office: Office):
    loop = office.make()
    office.step(loop, 2)
    ConfigMapRecords(office.api, "default", "main").take_over(office.site.cluster_id)
    assert office.step(loop) == 0.0
    office.step(loop)
    assert loop.record is not None
    assert loop.record.epoch == 3


def test_an_api_that_is_away_stops_new_moves_and_nothing_is_lost(office: Office):
    loop = office.make()
    office.step(loop)
    sick(office)
    office.api.refuse("replace", CONFIG_MAPS, Transient("the API is away"))
    before = office.site.cluster.mutations
    office.step(loop)
    assert office.site.cluster.mutations == before
    office.api.refuse("replace", CONFIG_MAPS, None)
    office.step(loop)
    assert office.site.cluster.snapshot().leaders()[1] == 0


def test_news_that_cannot_be_written_do_not_hold_a_demotion_up(office: Office):
    loop = office.make()
    office.step(loop)
    sick(office)
    for resource in (POLICIES, EVENTS):
        office.api.refuse("apply", resource, Transient("away"))
    office.step(loop)
    assert office.site.cluster.snapshot().leaders()[1] == 0


def test_a_persons_override_reaches_the_turn(office: Office):
    loop = office.make()
    office.site.signals.override(2, OverrideState.DEMOTED, "disk swap")
    office.step(loop)
    assert loop.record is not None
    assert list(loop.record.demoted) == [2]
    assert {e.state for e in loop.record.entries.values()} == {EntryState.DISPLACED}


def test_a_lease_of_the_cluster_stands_where_all_operators_look(office: Office):
    office.step(office.make())
    (lease,) = office.api.all(LEASES)
    assert (lease["metadata"]["namespace"], lease["spec"]["holderIdentity"]) == ("operators", "operator-a")
    office.close()
    assert office.api.all(LEASES)[0]["spec"]["holderIdentity"] == ""


def test_a_defect_in_one_turn_neither_ends_the_loop_nor_keeps_the_lease(office: Office):
    loop = office.make()
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
    assert office.connector.closed == 1
    assert office.metrics.registry.get_sample_value(
        "bellwether_errors_total", {"namespace": "default", "policy": "main", "kind": "Defect"}
    )
