"""The Job of a rebalance on a real API server: every kind of runner is accepted as it is, and found again by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.job_commands import Work
from bellwether.adapters.kubernetes.api_client import JOBS, KubernetesClient, connect
from bellwether.adapters.kubernetes.jobs.job_manifest import manifest
from bellwether.adapters.kubernetes.jobs.kubernetes_jobs import KubernetesJobs
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.rebalance_spec import Rebalance
from bellwether.ports.errors import Terminal
from bellwether.ports.jobs import JobState
from testkit.kubernetes import api_objects

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

RUN = "at-20261121-0400"
EXECUTORS = {"instances": 3, "podTemplateRef": {"name": "executors"}}
RUNNERS: dict[str, dict[str, Any]] = {
    "the smallest": {},
    "with everything": {
        "serviceAccountName": "bellwether",
        "resources": {"cpu": "500m", "memory": "1Gi"},
        "sparkConf": [{"name": "spark.x", "value": "it's two words"}],
        "environmentSecretRef": {"name": "store"},
    },
    "Spark on Kubernetes": {"type": "SparkOnKubernetes", "serviceAccountName": "spark", "executors": EXECUTORS},
}


def asked(namespace: str, name: str = "main", **spec: Any) -> tuple[LeadershipPolicy, Rebalance]:
    body = api_objects.rebalance(**spec)
    body["metadata"] |= {"namespace": namespace, "name": name, "uid": "3f0c2a9b-0000-4000-8000-000000000000"}
    policy = LeadershipPolicy.read(body)
    assert policy.spec.rebalance is not None
    return policy, policy.spec.rebalance


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=RUNNERS)
def test_every_runners_job_is_accepted_with_no_unknown_field(
    apiserver: ApiServer, namespace: str, runner: dict[str, Any]
) -> None:
    policy, rebalance = asked(namespace, runner={"image": "bellwether:dev", **runner})
    body = manifest(policy, rebalance, Work.of(policy, rebalance, RUN, "cluster-1"))
    options = ("--dry-run=server", "--validate=strict", "-f", "-")
    assert "created" in apiserver.kubectl("create", *options, stdin=json.dumps(body))


def test_a_claim_is_accepted_where_the_history_lies(apiserver: ApiServer, namespace: str) -> None:
    policy, rebalance = asked(
        namespace,
        history={"uri": "/var/lib/loads"},
        runner={"image": "bellwether:dev", "persistentVolumeClaim": {"claimName": "loads"}},
    )
    body = manifest(policy, rebalance, Work.of(policy, rebalance, RUN, ""))
    options = ("--dry-run=server", "--validate=strict", "-f", "-")
    assert "created" in apiserver.kubectl("create", *options, stdin=json.dumps(body))


def test_a_job_is_made_once_and_found_by_another_process(api: KubernetesClient, namespace: str) -> None:
    policy, rebalance = asked(namespace)
    KubernetesJobs(api, policy, rebalance, "c").start(RUN)
    again = KubernetesJobs(api, policy, rebalance, "c")
    again.start(RUN)
    assert len(api.list(JOBS, namespace)) == 1
    word = again.look(RUN)
    assert word is not None
    assert word.state is JobState.ACTIVE
    assert again.look("another") is None


def test_the_longest_policy_name_makes_a_job(api: KubernetesClient, namespace: str) -> None:
    policy, rebalance = asked(namespace, name="p" * 63)
    jobs = KubernetesJobs(api, policy, rebalance, "c")
    jobs.start(RUN)
    assert jobs.look(RUN) is not None


def test_a_missing_right_names_the_verb_and_the_resource(apiserver: ApiServer, namespace: str) -> None:
    policy, rebalance = asked(namespace)
    stranger = KubernetesJobs(connect(apiserver.kubeconfig_for("stranger")), policy, rebalance, "c")
    with pytest.raises(Terminal, match="lacks the verb 'create' on jobs in API group batch"):
        stranger.start(RUN)
