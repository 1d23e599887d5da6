"""The Job of a rebalance on a real API server: every kind of profile is accepted as it is, and found again by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import JOBS, KubernetesClient, connect
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.ports.errors import Terminal
from bellwether_load.api.load_config import LoadSettings
from bellwether_load.controller.job_commands import JobState
from bellwether_load.controller.job_manifest import manifest
from bellwether_load.controller.kubernetes_jobs import KubernetesJobs
from testkit.kubernetes import api_objects
from testkit.loads.load_configs import load_config

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

RUN = "at-20261121-0400"
EXECUTORS = {"instances": 3, "podTemplate": {"spec": {"nodeSelector": {"pool": "spark"}}}}
PROFILES: dict[str, dict[str, Any]] = {
    "the smallest": {},
    "with everything": {
        "serviceAccountName": "bellwether",
        "resources": {"cpu": "500m", "memory": "1Gi"},
        "sparkConf": {"spark.x": "it's two words"},
    },
    "Spark on Kubernetes": {"type": "SparkOnKubernetes", "serviceAccountName": "spark", "executors": EXECUTORS},
}


def asked(
    namespace: str, name: str = "main", uri: str = "s3://loads", store: dict[str, Any] | None = None, **profile: Any
) -> tuple[LeadershipPolicy, LoadSettings]:
    body = api_objects.policy(name)
    body["metadata"]["namespace"] = namespace
    owner = api_objects.rebalance(policy=name)
    owner["metadata"] |= {"namespace": namespace, "uid": "3f0c2a9b-0000-4000-8000-000000000000"}
    policy = LeadershipPolicy.read(body).with_rebalances([owner])
    return policy, load_config(uri, store=store, **profile).settings(policy)


def created(apiserver: ApiServer, policy: LeadershipPolicy, settings: LoadSettings) -> str:
    """What the API server says of the run's Job; nothing is kept."""
    body = manifest(policy, settings, RUN, "cluster-1")
    return apiserver.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(body))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_profiles_job_is_accepted_with_no_unknown_field(
    apiserver: ApiServer, namespace: str, profile: dict[str, Any]
) -> None:
    assert "created" in created(apiserver, *asked(namespace, store={"environmentSecretName": "store"}, **profile))


def test_a_claim_is_accepted_where_the_store_is(apiserver: ApiServer, namespace: str) -> None:
    chosen = asked(namespace, uri="/var/lib/loads", store={"persistentVolumeClaim": "loads"})
    assert "created" in created(apiserver, *chosen)


def test_a_job_is_made_once_and_found_by_another_process(api: KubernetesClient, namespace: str) -> None:
    policy, settings = asked(namespace)
    KubernetesJobs(api, policy, settings, "c").start(RUN)
    again = KubernetesJobs(api, policy, settings, "c")
    again.start(RUN)
    assert len(api.list(JOBS, namespace)) == 1
    word = again.look(RUN)
    assert word is not None
    assert word.state is JobState.ACTIVE
    assert again.look("another") is None


def test_the_longest_policy_name_makes_a_job(api: KubernetesClient, namespace: str) -> None:
    policy, settings = asked(namespace, name="p" * 63)
    jobs = KubernetesJobs(api, policy, settings, "c")
    jobs.start(RUN)
    assert jobs.look(RUN) is not None


def test_a_missing_right_names_the_verb_and_the_resource(apiserver: ApiServer, namespace: str) -> None:
    policy, settings = asked(namespace)
    stranger = KubernetesJobs(connect(apiserver.kubeconfig_for("stranger")), policy, settings, "c")
    with pytest.raises(Terminal, match="lacks the verb 'create' on jobs in API group batch"):
        stranger.start(RUN)
