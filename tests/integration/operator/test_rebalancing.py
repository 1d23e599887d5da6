"""A rebalance on a real API server and real brokers: the Job, the digest, the waves, and what is honoured afterwards.

Nothing runs pods here, so a test plays the part of Kubernetes' controllers: it does the Job's work with a small planner
and says in the Job's status what became of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import JOBS
from bellwether.core.model.cluster import TopicPartition
from bellwether_load.store.filesystems import Store
from testkit.kubernetes.api_objects import LOADS
from testkit.loads.load_configs import options
from testkit.loads.sample_rounds import read_table
from testkit.processes.crash_points import REACHED
from testkit.processes.plan_jobs import complete, end_job, met
from testkit.processes.sites import condition
from testkit.simulation.rebalance_fixture import Planner
from waiting import limit

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

WAVES = {"partitions": 4, "pauseSeconds": 0}


class Rebalanced:
    """A site whose topic is skewed and whose policy rebalances, with a store and a planner for it."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.options = options(folder, str(folder / "store"), image="bellwether:test")
        self.store = Store.open(str(folder / "store" / site.namespace / "main"))
        self.planner = Planner(self.store, policy=(site.namespace, "main"), rates=self.rate)

    def rate(self, slot: Any) -> float | None:
        """The topic's partitions carry ever less; nothing is known of others, so they stay."""
        return 40_000.0 / (1 + slot.partition) if slot.topic == self.site.topic else None

    def begin(self, program: str = "bellwether", **environment: str) -> None:
        """Topic, policy, operator; everything is led by the first replica, broker 1 leading the heaviest."""
        self.site.topics(
            {self.site.topic: 16}, assignments={self.site.topic: [[1, 2, 3]] * 10 + [[2, 3, 1], [3, 1, 2]] * 3}
        )
        self.site.policy(rebalance={"waves": WAVES})
        self.site.operator(*self.options, program=program, **environment)
        self.site.until_reported()

    def annotate(self, **annotations: str) -> None:
        for name, value in annotations.items():
            self.site.kubectl(
                "annotate", "lr", LOADS, f"bellwether.dev/{name.replace('_', '-')}={value}", "--overwrite"
            )

    @property
    def status(self) -> dict[str, Any]:
        return self.site.rebalance()

    def until(self, state: str, seconds: float = 60) -> None:
        self.site.until(
            lambda: self.status.get("state") == state, seconds, f"the rebalance is {state}", lambda: self.status
        )

    def job(self) -> Mapping[str, Any]:
        """The one Job that the operator made."""
        self.site.until(
            lambda: self.site.api.list(JOBS, self.site.namespace), 60, "there is a Job", lambda: self.status
        )
        found = self.site.api.list(JOBS, self.site.namespace)
        assert len(found) == 1
        return found[0]

    def finish(self, job: Mapping[str, Any]) -> None:
        """What a node and Kubernetes' controllers would do."""
        complete(self.site, job, self.planner)

    def proposed(self) -> str:
        """Ask for a plan and let the Job bring it; its digest."""
        self.annotate(rebalance="now")
        self.finish(self.job())
        self.until("Proposed")
        return str(self.status["digest"])

    def wanted(self, digest: str) -> dict[TopicPartition, tuple[int, ...]]:
        """The order that the plan gives each partition of the topic; its own where the plan leaves it."""
        moves = read_table(self.store, f"plans/{digest}/moves/part-00000.parquet").to_pylist()
        orders = self.site.orders()
        return {**orders, **{TopicPartition(m["topic"], m["partition"]): tuple(m["order"]) for m in moves}}

    def until_it_stands(self, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """The operator says so; whom we ask may hear of it a moment later than whom it asked."""

        def stands() -> bool:
            now = self.site.partitions()
            orders = {name: p.replicas for name, p in now.items()}
            return orders == dict(wanted) and all(p.leader == p.replicas[0] for p in now.values())

        self.site.until(stands, 10, "every partition is as planned", self.site.partitions)


@pytest.fixture
def rebalanced(bare_site: Site, tmp_path: Path) -> Rebalanced:
    return Rebalanced(bare_site, tmp_path)


def test_from_asking_to_last_wave_and_demotion_honours_new_orders(rebalanced: Rebalanced) -> None:
    rebalanced.begin()
    site, before = rebalanced.site, rebalanced.site.orders()
    rebalanced.annotate(rebalance="now")
    job = rebalanced.job()
    rebalanced.until("Running")
    assert job["metadata"]["ownerReferences"][0]["name"] == LOADS
    pod = job["spec"]["template"]["spec"]
    assert [c["args"][0] for c in (*pod["initContainers"], *pod["containers"])] == ["loads", "plan"]
    rebalanced.finish(job)
    rebalanced.until("Proposed")
    digest, plan = rebalanced.status["digest"], rebalanced.status["plan"]
    assert plan["loadAfter"] < plan["loadBefore"]
    assert condition(rebalanced.status, "RebalanceProposed")["status"] == "True"
    assert site.orders() == before

    rebalanced.annotate(approve_plan="0123456789abcdef")
    site.until(
        lambda: condition(rebalanced.status, "RebalanceProposed").get("reason") == "OtherPlanApproved",
        30,
        "another digest is named as such",
        lambda: rebalanced.status,
    )
    assert site.orders() == before

    wanted = rebalanced.wanted(digest)
    rebalanced.annotate(approve_plan=digest)
    rebalanced.until("Done")
    rebalanced.until_it_stands(wanted)
    assert {n: sorted(o) for n, o in wanted.items()} == {n: sorted(o) for n, o in before.items()}
    assert (rebalanced.status["skipped"], rebalanced.status["applied"]) == (0, plan["moves"] + plan["reorders"])
    reasons = ("get", "events", "-o", "jsonpath={.items[*].reason}")
    # Events are posted once the status is written.
    site.until(
        lambda: {"PlanProposed", "NoPlanPending"} <= set(site.kubectl(*reasons).split()), 30, "events tell of it"
    )

    site.demote(1)
    site.until_demoted(1, wanted)
    site.lift_and_wait(1, wanted)


@pytest.mark.slow
def test_an_operator_that_is_killed_in_the_middle_of_the_waves_is_followed_by_one_that_goes_on(
    rebalanced: Rebalanced,
) -> None:
    rebalanced.begin(program="testkit.processes.crash_points", DIES_AT="after reorder 2")
    site, digest = rebalanced.site, rebalanced.proposed()
    wanted = rebalanced.wanted(digest)
    rebalanced.annotate(approve_plan=digest)
    site.until(lambda: REACHED in site.logs(), 60, "the operator has died", lambda: rebalanced.status)
    site.operator(*rebalanced.options)
    rebalanced.until("Done", 90)
    rebalanced.until_it_stands(wanted)
    assert rebalanced.status["skipped"] == 0
    assert len(site.api.list(JOBS, site.namespace)) == 1


@pytest.mark.slow
def test_an_operator_that_is_killed_while_the_job_runs_is_followed_by_one_that_finds_it(rebalanced: Rebalanced) -> None:
    rebalanced.begin()
    site = rebalanced.site
    rebalanced.annotate(rebalance="now")
    job = rebalanced.job()
    rebalanced.until("Running")
    site.processes[-1].kill()
    rebalanced.finish(job)
    site.operator(*rebalanced.options)
    rebalanced.until("Proposed", 90)
    assert len(site.api.list(JOBS, site.namespace)) == 1


@pytest.mark.slow
def test_a_job_that_fails_on_a_node_says_why_in_status_and_is_not_made_again(rebalanced: Rebalanced) -> None:
    rebalanced.begin()
    rebalanced.annotate(rebalance="now")
    job = rebalanced.job()
    failed = {
        **met("Failed"),
        "reason": "DeadlineExceeded",
        "message": "Job was active longer than specified deadline",
    }
    end_job(rebalanced.site, job, failed=1, conditions=[{**met("FailureTarget"), "reason": "DeadlineExceeded"}, failed])
    rebalanced.until("Failed")
    assert "DeadlineExceeded: Job was active longer than specified deadline" in rebalanced.status["message"]
    assert len(rebalanced.site.api.list(JOBS, rebalanced.site.namespace)) == 1


@pytest.mark.slow
def test_the_command_asks_shows_approves_and_waits(rebalanced: Rebalanced) -> None:
    rebalanced.begin()
    site = rebalanced.site
    command = [sys.executable, "-m", "bellwether", "rebalance", "--policy", "main", "-n", site.namespace, "--yes"]
    environment = {**os.environ, "KUBECONFIG": str(site.server.kubeconfig)}
    asked = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        rebalanced.finish(rebalanced.job())
        said, _ = asked.communicate(timeout=limit(90))
    finally:
        asked.kill()
    assert asked.returncode == 0, said
    digest = rebalanced.status["digest"]
    assert f"plan {digest}: " in said
    assert "above the optimum" in said or "is optimal" in said
    assert "partitions have the plan's order" in said
    rebalanced.until_it_stands(rebalanced.wanted(digest))


ATTACKS: dict[str, dict[str, Any]] = {
    "an address": {"history": {"uri": "gs://x/y?endpoint_override=10.0.0.1:80&scheme=http"}},
    "an image": {"runner": {"image": "registry.example.com/any"}},
    "a Secret": {"runner": {"environmentSecretRef": {"name": "database"}}},
    "a process": {"runner": {"type": "Process"}},
}


def test_what_the_administrator_decides_is_refused_in_a_rebalance(bare_site: Site) -> None:
    from realparts.apiserver import KubectlFailed

    for what, fields in ATTACKS.items():
        with pytest.raises(KubectlFailed) as refused:
            bare_site.policy(rebalance=fields)
        assert f'unknown field "spec.{next(iter(fields))}"' in str(refused.value), what
    assert json.loads(bare_site.kubectl("get", "lr", "-o", "json"))["items"] == []
