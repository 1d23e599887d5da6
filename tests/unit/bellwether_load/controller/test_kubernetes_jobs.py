"""A rebalance's job as a Kubernetes Job: what it asks for, that it is made once, and what is read from it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import JOBS, PODS
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.ports.errors import Terminal
from bellwether_load.api.load_config import LoadSettings
from bellwether_load.controller.job_commands import JobState, JobStatus
from bellwether_load.controller.job_manifest import manifest
from bellwether_load.controller.kubernetes_jobs import KubernetesJobs
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.loads.load_configs import load_config
from testkit.messages import assert_wording

RUN = "at-20261121-0400"
NAME = "bellwether-plan-main-at-20261121-0400-13deba4b901f8318"
EXECUTORS: dict[str, Any] = {
    "type": "SparkOnKubernetes",
    "serviceAccountName": "spark",
    "executors": {
        "instances": 3,
        "resources": {"cpu": "1500m", "memory": "2Gi"},
        "podTemplate": {"spec": {"nodeSelector": {"pool": "spark"}}},
    },
}


def asked(
    uri: str = "s3://loads", store: dict[str, Any] | None = None, **profile: Any
) -> tuple[LeadershipPolicy, LoadSettings]:
    policy = api_objects.rebalanced()
    return policy, load_config(uri, store=store, **profile).settings(policy)


def made(uri: str = "s3://loads", store: dict[str, Any] | None = None, **profile: Any) -> Any:
    policy, chosen = asked(uri, store, **profile)
    return manifest(policy, chosen, RUN, "cluster-1")


def settings(job: Any) -> dict[str, str]:
    container = job["spec"]["template"]["spec"]["containers"][0]
    said = next(v["value"] for v in container["env"] if v["name"] == "PYSPARK_SUBMIT_ARGS")
    return dict(word.split("=", 1) for word in shlex.split(said) if word.startswith("spark."))


class TestManifest:
    def test_loads_come_first_and_the_plan_after_them_in_one_pod(self):
        pod = made()["spec"]["template"]["spec"]
        first, then = pod["initContainers"][0], pod["containers"][0]
        assert (first["command"], first["args"][0]) == (["python", "-m", "bellwether_load"], "loads")
        assert (then["command"], then["args"][0]) == (["python", "-m", "bellwether_load"], "plan")
        assert first["image"] == then["image"] == "bellwether:dev"

    def test_it_belongs_to_its_policy_and_is_found_by_name_and_labels(self):
        job = made()
        assert job["metadata"]["name"] == NAME
        assert job["metadata"]["ownerReferences"][0]["kind"] == "LeaderRebalance"
        labels = {object_names.POLICY_LABEL: "main", object_names.RUN_LABEL: RUN}
        assert job["metadata"]["labels"] == labels
        assert job["spec"]["template"]["metadata"]["labels"] == labels

    def test_a_long_policy_name_still_makes_a_name(self):
        assert len(object_names.plan_job("p" * 63, RUN)) <= 63
        assert object_names.plan_job("p" * 63, RUN) != object_names.plan_job("p" * 62, RUN)

    def test_it_is_bounded_in_time_in_tries_and_in_how_long_it_is_kept(self):
        spec = made(timeoutSeconds=600)["spec"]
        assert (spec["activeDeadlineSeconds"], spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (600, 1, 86400)

    def test_its_pod_may_do_little(self):
        pod = made()["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }

    def test_what_it_may_use_is_limited_so_that_the_jvm_knows_its_cores(self):
        container = made(resources={"cpu": "3", "memory": "6Gi"})["spec"]["template"]["spec"]["containers"][0]
        assert container["resources"] == {
            "requests": {"cpu": "3", "memory": "6Gi"},
            "limits": {"cpu": "3", "memory": "6Gi"},
        }

    def test_a_claim_is_mounted_where_the_store_is_and_the_job_uses_the_policys_directory(self):
        pod = made("/loads", {"persistentVolumeClaim": "kept"})["spec"]["template"]["spec"]
        assert {"name": "history", "persistentVolumeClaim": {"claimName": "kept"}} in pod["volumes"]
        for container in (*pod["initContainers"], *pod["containers"]):
            assert {"name": "history", "mountPath": "/loads"} in container["volumeMounts"]
            assert container["args"][1:3] == ["--store", "/loads/default/main"]

    def test_credentials_come_from_a_secret_and_are_not_in_the_manifest(self):
        containers = made(store={"environmentSecretName": "store"})["spec"]["template"]["spec"]["containers"]
        assert containers[0]["envFrom"] == [{"secretRef": {"name": "store"}}]

    def test_single_pod_spark_gets_a_writable_directory_and_no_executors(self):
        assert settings(made()) == {"spark.local.dir": "/tmp/spark"}

    def test_the_profiles_settings_override_the_defaults_and_are_passed_unchanged(self):
        found = settings(made(sparkConf={"spark.local.dir": "/fast", "spark.x": "$(POD_IP) y"}))
        assert found == {"spark.local.dir": "/fast", "spark.x": "$$(POD_IP) y"}


class TestSparkOnKubernetes:
    def test_the_pod_is_the_driver_and_makes_its_executors_itself(self):
        job = made(**EXECUTORS)
        pod = job["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == "spark"
        assert pod["automountServiceAccountToken"] is True
        assert pod["initContainers"][0]["args"][-2:] == ["--master", "k8s://https://kubernetes.default.svc"]
        found = settings(job)
        assert found["spark.driver.host"] == "$(POD_IP)"
        assert found["spark.kubernetes.driver.pod.name"] == "$(POD_NAME)"
        assert found["spark.kubernetes.container.image"] == "bellwether:dev"
        assert found["spark.executor.instances"] == "3"
        assert (found["spark.executor.cores"], found["spark.kubernetes.executor.limit.cores"]) == ("2", "1500m")
        assert found["spark.executor.memory"] == "1228m"

    def test_the_executors_template_is_an_annotation_which_people_of_the_namespace_cannot_change(self):
        job = made(**EXECUTORS)
        template, pod = job["spec"]["template"], job["spec"]["template"]["spec"]
        given = json.loads(template["metadata"]["annotations"]["bellwether.dev/executor-template"])
        assert given == {"spec": {"nodeSelector": {"pool": "spark"}}}
        (volume,) = [one for one in pod["volumes"] if one["name"] == "templates"]
        field = {"fieldPath": "metadata.annotations['bellwether.dev/executor-template']"}
        assert volume["downwardAPI"] == {"items": [{"path": "executor.yaml", "fieldRef": field}]}
        assert {"name": "templates", "mountPath": "/etc/bellwether"} in pod["containers"][0]["volumeMounts"]
        assert settings(job)["spark.kubernetes.executor.podTemplateFile"] == "/etc/bellwether/executor.yaml"

    def test_a_claim_is_mounted_in_the_executors_as_in_the_driver(self):
        found = settings(made("/loads", {"persistentVolumeClaim": "kept"}, **EXECUTORS))
        volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.history"
        assert (found[f"{volume}.mount.path"], found[f"{volume}.options.claimName"]) == ("/loads", "kept")

    def test_kubernetes_variables_come_before_those_that_use_them(self):
        env = made(**EXECUTORS)["spec"]["template"]["spec"]["containers"][0]["env"]
        order = [variable["name"] for variable in env]
        assert order.index("POD_IP") < order.index("PYSPARK_SUBMIT_ARGS")


def jobs(api: MemoryApi) -> KubernetesJobs:
    return KubernetesJobs(api, *asked(), "cluster-1")


def put_pod(api: MemoryApi, name: str = "pod-1", **status: Any) -> None:
    labels = {object_names.POLICY_LABEL: "main", object_names.RUN_LABEL: RUN}
    api.put(PODS, {"metadata": {"name": name, "namespace": "default", "labels": labels}, "status": status})


class TestJobs:
    def test_a_job_is_made_once_however_often_it_is_started_and_by_whom(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        jobs(api).start(RUN)
        assert [job["metadata"]["name"] for job in api.all(JOBS)] == [NAME]
        assert api.writes == [f"create jobs {NAME}"]

    def test_a_job_is_found_by_another_process(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        assert jobs(api).look(RUN) == JobStatus(JobState.ACTIVE)

    def test_a_job_that_is_not_there_or_goes_is_none(self):
        api = MemoryApi()
        assert jobs(api).look(RUN) is None
        jobs(api).start(RUN)
        api.merge(JOBS, "default", NAME, {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}})
        assert jobs(api).look(RUN) is None

    def test_a_job_that_is_complete_has_succeeded(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        suspended = {"type": "Suspended", "status": "False"}
        complete = {"type": "Complete", "status": "True"}
        api.merge(JOBS, "default", NAME, {"status": {"conditions": [suspended, complete]}})
        assert jobs(api).look(RUN) == JobStatus(JobState.SUCCEEDED)

    def test_a_job_that_failed_says_why_in_its_pods_last_words(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        failed = {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached ...",
        }
        api.merge(JOBS, "default", NAME, {"status": {"conditions": [failed]}})
        said = {"exitCode": 3, "reason": "Error", "message": "  9.1 s  Spark is up\nerror: loads/x: is empty\n"}
        put_pod(api, initContainerStatuses=[{"name": "loads", "state": {"terminated": said}}])
        assert jobs(api).look(RUN) == JobStatus(
            JobState.FAILED,
            f"Job {NAME}: BackoffLimitExceeded: loads: Error, exit status 3: error: loads/x: is empty",
        )

    def test_a_job_that_was_killed_for_its_memory_says_so(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        api.merge(JOBS, "default", NAME, {"status": {"conditions": [failed]}})
        put_pod(
            api,
            containerStatuses=[{"name": "plan", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
        )
        word = jobs(api).look(RUN)
        assert word is not None
        assert_wording(word.message)

    def test_without_a_right_to_pods_the_job_condition_is_reported(self):
        api = MemoryApi()
        jobs(api).start(RUN)
        failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}
        api.merge(JOBS, "default", NAME, {"status": {"conditions": [failed]}})
        api.refuse("list", PODS, Terminal("not allowed"))
        ours = jobs(api)
        with structlog.testing.capture_logs() as logs:
            words = [ours.look(RUN) for _ in range(3)]
        assert words == [JobStatus(JobState.FAILED, f"Job {NAME}: DeadlineExceeded: too long")] * 3
        assert [(entry["log_level"], entry["error"]) for entry in logs] == [("warning", "not allowed")]

    @pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
    def test_an_image_that_cannot_be_pulled_is_reported_while_waiting(self, reason: str):
        api = MemoryApi()
        jobs(api).start(RUN)
        waiting = {"waiting": {"reason": reason, "message": "no such image"}}
        put_pod(api, initContainerStatuses=[{"name": "loads", "state": waiting}])
        assert jobs(api).look(RUN) == JobStatus(JobState.ACTIVE, f"{reason}: no such image")
