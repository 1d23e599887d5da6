"""Manifest of the Kubernetes Job that computes a rebalance plan. Pure: a policy and a run in, a plain object out.

One pod: an init container measures the loads, the container plans; both run ``python -m bellwether_load``. With Spark
on Kubernetes that pod is the driver, in client mode, and creates its executors. The policy owns the Job, which is
deleted with it; its results are in the store.
"""

from __future__ import annotations

from typing import Any

from bellwether.adapters.job_commands import Work, commands, cores, heap_mebibytes, spark_settings, submit_arguments
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import JOBS, Object
from bellwether.api.v1alpha1.base_model import API_VERSION
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.plan_runner import Resources, Runner, RunnerType, absolute_path
from bellwether.api.v1alpha1.spec.rebalance_spec import Rebalance

KEPT_SECONDS = 86400
"""Seconds for which a finished Job is kept, for troubleshooting."""

RETRIES = 1
TEMPLATE_DIRECTORY = "/etc/bellwether"
TEMPLATE = "executor.yaml"
HISTORY, SCRATCH, TEMPLATES = "history", "scratch", "templates"


def manifest(policy: LeadershipPolicy, rebalance: Rebalance, work: Work) -> Object:
    """Manifest of the Job of one run."""
    metadata, runner = policy.metadata, rebalance.runner
    labels = {
        object_names.POLICY_LABEL: object_names.legal(metadata.name),
        object_names.RUN_LABEL: object_names.legal(work.run),
    }
    measure, plan = commands(work, runner)
    pod: Object = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [_container("loads", measure, rebalance, work)],
        "containers": [_container("plan", plan, rebalance, work)],
        "volumes": _volumes(runner),
    }
    if runner.service_account_name:
        pod["serviceAccountName"] = runner.service_account_name
    # Regardless of the ServiceAccount's own setting: only the driver of Spark on Kubernetes uses the API.
    pod["automountServiceAccountToken"] = runner.type is RunnerType.SPARK_ON_KUBERNETES
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": object_names.plan_job(metadata.name, work.run),
            "namespace": metadata.namespace,
            "labels": labels,
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": policy.kind, "name": metadata.name, "uid": metadata.uid}
            ],
        },
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": runner.timeout_seconds,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _container(name: str, command: list[str], rebalance: Rebalance, work: Work) -> Object:
    runner = rebalance.runner
    mounts = [{"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108 - the pod's own
    if runner.persistent_volume_claim is not None and absolute_path(rebalance.history.uri):
        mounts.append({"name": HISTORY, "mountPath": rebalance.history.uri})
    if runner.executors.pod_template_ref is not None and runner.type is RunnerType.SPARK_ON_KUBERNETES:
        mounts.append({"name": TEMPLATES, "mountPath": TEMPLATE_DIRECTORY})
    container: Object = {
        "name": name,
        "image": runner.image,
        "command": command[:3],
        "args": command[3:],
        "env": _environment(runner, work),
        "resources": _resources(runner.resources),
        "volumeMounts": mounts,
        # The end of the log contains the error, and reading it needs no permission for logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if runner.environment_secret_ref is not None:
        container["envFrom"] = [{"secretRef": {"name": runner.environment_secret_ref.name}}]
    return container


def _environment(runner: Runner, work: Work) -> list[Object]:
    settings = {"spark.local.dir": "/tmp/spark"}  # noqa: S108 - the pod's own
    variables: list[Object] = [{"name": "HOME", "value": "/tmp"}]  # noqa: S108
    if runner.type is RunnerType.SPARK_ON_KUBERNETES:
        variables += [_downward("POD_IP", "status.podIP"), _downward("POD_NAME", "metadata.name")]
        variables.append(_downward("POD_NAMESPACE", "metadata.namespace"))
        settings |= _executor_settings(runner, work) | _executor_volume(runner, work)
    settings |= {name: value.replace("$(", "$$(") for name, value in spark_settings(runner).items()}
    return [*variables, {"name": "PYSPARK_SUBMIT_ARGS", "value": submit_arguments(settings)}]


def _executor_settings(runner: Runner, work: Work) -> dict[str, str]:
    """Settings by which the driver creates its executors and they find it. Kubernetes fills in the pod's values."""
    each = runner.executors.resources
    settings = {
        "spark.driver.host": "$(POD_IP)",
        # Executors connect to this address (spark.kubernetes.executor.useDriverPodIP).
        "spark.driver.bindAddress": "$(POD_IP)",
        "spark.kubernetes.namespace": "$(POD_NAMESPACE)",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",
        "spark.kubernetes.container.image": str(runner.image),
        "spark.kubernetes.authenticate.serviceAccountName": str(runner.service_account_name),
        "spark.executor.instances": str(runner.executors.instances),
        "spark.executor.cores": str(cores(each.cpu)),
        "spark.kubernetes.executor.request.cores": each.cpu,
        "spark.kubernetes.executor.limit.cores": each.cpu,
        "spark.executor.memory": f"{heap_mebibytes(each.memory)}m",
        # Memory of Python and Arrow in addition to the JVM.
        "spark.executor.memoryOverheadFactor": "0.66",
        f"spark.kubernetes.executor.label.{object_names.RUN_LABEL}": object_names.legal(work.run),
    }
    if runner.executors.pod_template_ref is not None:
        settings["spark.kubernetes.executor.podTemplateFile"] = f"{TEMPLATE_DIRECTORY}/{TEMPLATE}"
    return settings


def _executor_volume(runner: Runner, work: Work) -> dict[str, str]:
    """The claim, if there is one, mounted in the executors as in the driver."""
    if runner.persistent_volume_claim is None or not absolute_path(work.uri):
        return {}
    volume = f"spark.kubernetes.executor.volumes.persistentVolumeClaim.{HISTORY}"
    return {
        f"{volume}.mount.path": work.uri,
        f"{volume}.options.claimName": runner.persistent_volume_claim.claim_name,
    }


def _volumes(runner: Runner) -> list[Object]:
    volumes: list[Object] = [{"name": SCRATCH, "emptyDir": {}}]
    if runner.persistent_volume_claim is not None:
        claim = {"claimName": runner.persistent_volume_claim.claim_name}
        volumes.append({"name": HISTORY, "persistentVolumeClaim": claim})
    template = runner.executors.pod_template_ref
    if template is not None and runner.type is RunnerType.SPARK_ON_KUBERNETES:
        items = [{"key": template.key, "path": TEMPLATE}]
        volumes.append({"name": TEMPLATES, "configMap": {"name": template.name, "items": items}})
    return volumes


def _resources(given: Resources) -> dict[str, Any]:
    """Equal requests and limits: the JVM counts its cores by the limit."""
    same = {"cpu": given.cpu, "memory": given.memory}
    return {"requests": same, "limits": dict(same)}


def _downward(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
