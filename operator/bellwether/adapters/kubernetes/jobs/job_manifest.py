"""Manifest of the Kubernetes Job that computes a rebalance plan. Pure: a policy and a run in, a plain object out.

One pod: an init container measures the loads, the container plans; both are ``python -m bellwether_load``. With Spark
on Kubernetes that pod is the driver, in client mode, and makes its executors itself. The Job belongs to its policy and
goes with it; what it writes lies in the store.
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
"""How long a Job that has ended stays, for people to look at."""

RETRIES = 1
TEMPLATE_DIRECTORY = "/etc/bellwether"
TEMPLATE = "executor.yaml"
HISTORY, SCRATCH, TEMPLATES = "history", "scratch", "templates"


def manifest(policy: LeadershipPolicy, rebalance: Rebalance, work: Work) -> Object:
    """The Job of one run."""
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
    # Whatever the account says of itself: a driver makes pods, and nobody else here asks Kubernetes for anything.
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
        # The end of the log tells why it failed, and is read without a right to logs.
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
    """How the driver makes its executors and how they find it. Kubernetes puts the pod's own values in."""
    each = runner.executors.resources
    settings = {
        "spark.driver.host": "$(POD_IP)",
        # Executors are told this one (spark.kubernetes.executor.useDriverPodIP).
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
        # What Python and Arrow take beside the JVM.
        "spark.executor.memoryOverheadFactor": "0.66",
        f"spark.kubernetes.executor.label.{object_names.RUN_LABEL}": object_names.legal(work.run),
    }
    if runner.executors.pod_template_ref is not None:
        settings["spark.kubernetes.executor.podTemplateFile"] = f"{TEMPLATE_DIRECTORY}/{TEMPLATE}"
    return settings


def _executor_volume(runner: Runner, work: Work) -> dict[str, str]:
    """The claim, where there is one, mounted in the executors as it is in the driver."""
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
    """The same requested and as limit: the JVM counts its cores by the limit."""
    same = {"cpu": given.cpu, "memory": given.memory}
    return {"requests": same, "limits": dict(same)}


def _downward(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
