"""What a turn came to, on the objects: written on news only, and never in the way of the work."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, EVENTS, LEASES, POLICIES, Object, Resource
from bellwether.adapters.kubernetes.api_errors import OutdatedDefinition
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.reporting import status
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.restored_memory import restored_memory
from bellwether.core.detection.health_states import HealthState
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.gather import Memory
from bellwether.ports.errors import Fenced, Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import after, cluster, decisions, partition, record, said, snapshot, verdict, verdicts

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


class Desk:
    def __init__(self) -> None:
        self.api, self.clock, self.metrics = MemoryApi(), ManualClock(), OperatorMetrics()
        self.api.put(POLICIES, api_objects.policy())
        self.reporter = StatusReporter(self.api, self.clock, "pod-1", self.metrics)

    @property
    def policy(self) -> LeadershipPolicy:
        return LeadershipPolicy.read(self.api.get(POLICIES, "default", "main"))

    @property
    def status(self) -> dict[str, Any]:
        return self.api.get(POLICIES, "default", "main")["status"]

    def publish(self, report: Report | None = None, **generations: int) -> None:
        known = {int(broker.removeprefix("of_")): generation for broker, generation in generations.items()}
        self.reporter.publish(self.policy, report or said(policy=ENFORCE), Memory(record()), 0.1, known)

    def events(self) -> list[tuple[str, str, str]]:
        return sorted((e["type"], e["reason"], e["regarding"]["name"]) for e in self.api.all(EVENTS))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_brokers_status_says_of_which_generation_it_is_once_that_is_known(desk: Desk):
    desk.publish()
    assert "observedGeneration" not in str(desk.api.get(BROKER_HEALTHS, "default", "main-1")["status"])
    desk.publish(of_1=3)
    status = desk.api.get(BROKER_HEALTHS, "default", "main-1")["status"]
    assert [status["observedGeneration"], *(c["observedGeneration"] for c in status["conditions"])] == [3] * 4
    assert "observedGeneration" not in str(desk.api.get(BROKER_HEALTHS, "default", "main-2")["status"])


def test_a_report_makes_the_brokers_objects_and_says_how_they_are(desk: Desk):
    desk.publish()
    healths = {h["metadata"]["name"]: h for h in desk.api.all(BROKER_HEALTHS)}
    assert list(healths) == ["main-1", "main-2", "main-3"]
    assert healths["main-1"]["status"]["verdict"]["state"] == "Healthy"
    assert desk.status["message"]


def test_the_same_report_is_written_once(desk: Desk):
    desk.publish()
    desk.api.writes.clear()
    for _ in range(3):
        desk.publish()
    assert desk.api.writes == []


def test_statuses_are_written_without_the_right_to_list_the_probers_leases(desk: Desk):
    desk.api.refuse("list", LEASES, Terminal("lacks the verb 'list' on leases"))
    desk.publish()
    assert desk.status["message"]


def test_a_restarted_process_does_not_write_an_unchanged_status(desk: Desk):
    desk.publish()
    desk.api.writes.clear()
    again = StatusReporter(desk.api, desk.clock, "pod-1", OperatorMetrics())
    again.last_said(desk.policy, again.healths(desk.policy))
    again.publish(desk.policy, said(policy=ENFORCE), Memory(record()), 0.1)
    assert desk.api.writes == []


def test_the_pod_that_holds_the_lease_is_named(desk: Desk):
    desk.publish()
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    again.last_said(desk.policy, again.healths(desk.policy))
    assert desk.status["operator"] == "pod-1"
    again.publish(desk.policy, said(policy=ENFORCE), Memory(record()), 0.1)
    assert desk.status["operator"] == "pod-2"


@pytest.mark.parametrize(
    ("spec", "mode"),
    [({"mode": "Enforce", "suspend": True}, "Suspended"), ({"mode": "Observe"}, "Observe"), ({"mode": 3}, None)],
)
def test_the_mode_of_a_policy_that_cannot_be_reconciled_is_that_of_its_spec(desk: Desk, spec: dict, mode: str | None):
    body = desk.api.get(POLICIES, "default", "main")
    desk.reporter.trouble({**body, "spec": spec}, Reason.INVALID_POLICY, "so it is")
    assert desk.status.get("mode") == mode


def test_the_last_verdicts_are_read_back(desk: Desk):
    judged = {**verdicts(cluster(partition())), 1: verdict(1)}
    desk.publish(said(policy=ENFORCE, judged=judged))
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    read = again.last_said(desk.policy, again.healths(desk.policy))
    assert restored_memory(record(), desk.policy.status, read).verdicts == judged


def test_an_unreadable_broker_health_is_skipped(desk: Desk):
    desk.publish()
    desk.api.objects["brokerhealths", "default", "main-2"]["spec"]["brokerId"] = "two"
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    read = again.last_said(desk.policy, again.healths(desk.policy))
    assert [health.spec.broker_id for health in read] == [1, 3]


def test_the_objects_of_decommissioned_brokers_go(desk: Desk):
    desk.publish()
    desk.publish(said(snapshot(cluster(partition(replicas=[1, 2]), brokers=2)), ENFORCE))
    assert [h["metadata"]["name"] for h in desk.api.all(BROKER_HEALTHS)] == ["main-1", "main-2"]


def test_an_event_about_a_broker_has_the_uid_by_which_kubectl_describe_finds_it(desk: Desk):
    desk.publish()
    seen = cluster(partition())
    desk.publish(said(policy=ENFORCE, judged=verdicts(seen, down=[1])))
    (event,) = [e for e in desk.api.all(EVENTS) if e["regarding"]["name"] == "main-1"]
    assert event["regarding"]["uid"] == desk.api.get(BROKER_HEALTHS, "default", "main-1")["metadata"]["uid"]


def test_news_become_events_on_what_they_are_about(desk: Desk):
    desk.publish()
    sick = said(
        snapshot(now=after(60)),
        ENFORCE,
        judged={**verdicts(cluster(partition())), 1: verdict(1)},
        plan=Plan(decisions=decisions(1)),
        result=ExecutionResult(4, 2),
    )
    desk.publish(sick)
    assert desk.events() == [
        ("Normal", "LeadersMoved", "main"),
        ("Warning", "Demoted", "main-1"),
        ("Warning", "ExternallyUnreachable", "main-1"),
    ]


def test_an_election_is_remembered_with_its_time(desk: Desk):
    desk.publish(said(policy=ENFORCE, result=ExecutionResult(4, 2)))
    assert desk.status["lastElection"] == {"time": "2026-01-01T00:00:00Z", "partitions": 2}
    desk.clock.advance(60)
    desk.publish()
    assert desk.status["lastElection"]["partitions"] == 2


@pytest.mark.parametrize("error", [Transient("away"), Terminal("not allowed")])
def test_a_status_that_cannot_be_written_is_written_by_the_next_report(desk: Desk, error: Exception):
    desk.api.refuse("apply", POLICIES, error)  # type: ignore[arg-type]
    desk.publish()
    desk.api.refuse("apply", POLICIES, None)
    desk.publish()
    assert desk.status["message"]


def test_trouble_is_a_status_and_a_warning(desk: Desk):
    body = desk.api.get(POLICIES, "default", "main")
    desk.reporter.trouble(body, Reason.CLUSTER_UNREACHABLE, "kafka:9092: refused")
    assert desk.status["message"] == "kafka:9092: refused"
    assert desk.events() == [("Warning", "ClusterUnreachable", "main")]


def test_trouble_keeps_what_a_former_process_had_said(desk: Desk):
    desk.publish()
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    again.trouble(desk.api.get(POLICIES, "default", "main"), Reason.CLUSTER_UNREACHABLE, "gone")
    assert desk.status["brokers"]["healthy"] == 3


def test_trouble_of_a_policy_that_cannot_be_understood_keeps_the_cluster_that_it_is_pinned_to(desk: Desk):
    desk.publish()
    pinned = desk.status["clusterId"]
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    body = desk.api.get(POLICIES, "default", "main")
    again.trouble({**body, "spec": {"mode": "Perhaps"}}, Reason.INVALID_POLICY, "spec.mode")
    assert (desk.status["clusterId"], desk.status["brokers"]["healthy"]) == (pinned, 3)


def test_two_processes_that_say_the_same_trouble_write_it_once(desk: Desk):
    desk.reporter.trouble(desk.api.get(POLICIES, "default", "main"), Reason.INVALID_POLICY, "spec.mode")
    desk.clock.advance(60)
    again = StatusReporter(desk.api, desk.clock, "pod-2", OperatorMetrics())
    desk.api.writes.clear()
    again.trouble(desk.api.get(POLICIES, "default", "main"), Reason.INVALID_POLICY, "spec.mode")
    assert [w for w in desk.api.writes if "leadershippolicies" in w] == []


def test_trouble_while_the_api_is_away_is_no_trouble(desk: Desk):
    body = desk.api.get(POLICIES, "default", "main")
    desk.api.away = True
    desk.reporter.trouble(body, Reason.INVALID_POLICY, "spec.mode")


def test_a_forgotten_policy_leaves_no_metric(desk: Desk):
    desk.publish()
    desk.reporter.leading("default", "main", True)
    desk.reporter.metrics.count_failure("default", "main", "Fenced")
    desk.reporter.forget("default", "main")
    assert {s.name for m in desk.metrics.registry.collect() for s in m.samples} == {"bellwether_build_info"}


def test_an_error_before_the_reconcile_is_exported_as_a_metric(desk: Desk):
    body = desk.api.get(POLICIES, "default", "main")
    desk.reporter.trouble(body, Reason.CLUSTER_CHANGED, "another cluster")
    labels = {"namespace": "default", "policy": "main", "reason": "ClusterChanged"}
    assert desk.metrics.registry.get_sample_value("bellwether_policy_error", labels) == 1


def test_verdicts_go_to_status_with_their_reason(desk: Desk):
    judged = {**verdicts(cluster(partition())), 2: verdict(2, HealthState.SUSPECT)}
    desk.publish(said(policy=ENFORCE, judged=judged))
    health = desk.api.get(BROKER_HEALTHS, "default", "main-2")
    assert health["status"]["verdict"]["reason"] == "VantagesDisagree"
    assert desk.status["brokers"]["suspect"] == 1


def test_a_process_whose_lease_ran_out_in_the_middle_says_no_more(desk: Desk):
    desk.publish()
    before = desk.status
    asked = []

    def must_lead() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise Fenced("the Lease ran out")

    sick = said(policy=ENFORCE, judged=verdicts(snapshot().cluster, sick=[1]))
    desk.api.writes.clear()
    desk.reporter.publish(desk.policy, sick, Memory(record()), 0.1, must_lead=must_lead)
    assert len(desk.api.writes) == 1
    assert desk.status == before


def test_a_definition_that_is_too_old_is_said_in_fields_that_it_knows_and_work_goes_on(desk: Desk):
    old = OutdatedDefinition("the served definition does not know .status.plan: kubectl apply -f crds/")
    real = desk.api.apply

    def apply(resource: Resource, namespace: str, name: str, body: Object, manager: str, **how: Any) -> Object:
        if "plan" in body.get("status", {}):
            raise old
        return real(resource, namespace, name, body, manager, **how)

    desk.api.apply = apply  # type: ignore[assignment, method-assign]
    desk.publish()
    ready = next(c for c in desk.status["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "CRDOutdated")
    assert "kubectl apply -f crds/" in ready["message"]
    assert desk.status["clusterId"], "the policy stays pinned to its cluster"
    assert desk.reporter.problems() == [str(old)]
    assert ("Warning", "CRDOutdated", "main") in desk.events()
    desk.reporter.leading("default", "main", False)
    assert desk.reporter.problems() == [], "the present leader finds out what can be written"

    desk.publish()
    assert desk.reporter.problems() == [str(old)]
    desk.api.apply = real  # type: ignore[method-assign]
    desk.publish()
    assert "plan" in desk.status
    assert desk.reporter.problems() == []


class TestUnchangedReports:
    @pytest.fixture
    def rendered(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The brokers whose status was rendered."""
        seen: list[int] = []
        render = status.broker_status

        def counted(report: BrokerReport, *rest: Any) -> Object:
            seen.append(report.broker)
            return render(report, *rest)

        monkeypatch.setattr(status, "broker_status", counted)
        return seen

    def test_only_brokers_whose_report_or_generation_changed_are_rendered(self, desk: Desk, rendered: list[int]):
        desk.publish()
        desk.publish()
        assert rendered == [1, 2, 3]
        sick = said(policy=ENFORCE, judged=verdicts(cluster(partition()), sick=[2]))
        desk.publish(sick, of_3=2)
        assert rendered[3:] == [2, 3]

    def test_a_status_that_was_overwritten_is_rendered_again(self, desk: Desk, rendered: list[int]):
        desk.publish()
        stored = desk.api.get(BROKER_HEALTHS, "default", "main-2")
        forged = desk.api.put(BROKER_HEALTHS, {**stored, "status": {"leaders": 99}})
        assert desk.reporter.overwritten(BROKER_HEALTHS, forged)
        desk.publish()
        assert rendered[3:] == [2]
        assert desk.api.get(BROKER_HEALTHS, "default", "main-2")["status"]["verdict"]["state"] == "Healthy"

    def test_a_write_that_failed_is_tried_again(self, desk: Desk, rendered: list[int]):
        desk.publish()
        sick = said(policy=ENFORCE, judged=verdicts(cluster(partition()), sick=[2]))
        desk.api.refuse("apply", BROKER_HEALTHS, Transient("away"))
        desk.publish(sick)
        desk.api.refuse("apply", BROKER_HEALTHS, None)
        desk.publish(sick)
        assert rendered[3:] == [2, 2]
        assert desk.api.get(BROKER_HEALTHS, "default", "main-2")["status"]["verdict"]["state"] == "Sick"

    def test_what_another_process_wrote_meanwhile_is_replaced_after_a_take_over(self, desk: Desk):
        desk.publish()
        stored = desk.api.get(BROKER_HEALTHS, "default", "main-2")
        desk.api.put(BROKER_HEALTHS, {**stored, "status": {**stored["status"], "leaders": 99}})
        desk.reporter.last_said(desk.policy, desk.reporter.healths(desk.policy))
        desk.publish()
        assert desk.api.get(BROKER_HEALTHS, "default", "main-2")["status"]["leaders"] == 0
