"""Manifest of the Kubernetes Job that computes a rebalance plan.

Pure. In: a policy, its load settings and a run. Out: a plain object. One pod: an init container measures the loads, the
container plans; both run ``python -m bellwether_load``. With Spark on Kubernetes that pod is the driver, in client
mode, and creates its executors from the profile's pod template, which is an annotation of the pod: people of the
namespace could change a ConfigMap. The LeaderRebalance owns the Job, which is deleted with it; its results are in the
store.
"""

from __future__ import annotations

import json
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import JOBS, Object
from bellwether.api.v1alpha1.base_model import API_VERSION
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether_load.api.job_profile import JobProfile, JobType, PodResources
from bellwether_load.api.load_config import LoadSettings, LoadStore
from bellwether_load.controller.job_commands import commands, cores, file_name, heap_mebibytes, submit_arguments

KEPT_SECONDS = 86400
"""Seconds for which a finished Job is kept, for troubleshooting."""

RETRIES = 1
TEMPLATE_DIRECTORY = "/etc/bellwether"
TEMPLATE = "executor.yaml"
TEMPLATE_ANNOTATION = "bellwether.dev/executor-template"
HISTORY, SCRATCH, TEMPLATES = "history", "scratch", "templates"


def manifest(policy: LeadershipPolicy, settings: LoadSettings, run: str, cluster_id: str) -> Object:
    """Manifest of the Job of one run."""
    metadata, profile, owner = policy.metadata, settings.profile, policy.rebalance
    assert owner is not None  # noqa: S101
    labels, name = run_labels(policy, run), file_name(metadata.namespace, metadata.name, run)
    measure, plan = commands(settings, name, owner.spec.history_days, cluster_id)
    pod: Object = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [_container("loads", measure, settings, run)],
        "containers": [_container("plan", plan, settings, run)],
        "volumes": _volumes(settings),
    }
    if profile.service_account_name:
        pod["serviceAccountName"] = profile.service_account_name
    # Regardless of the ServiceAccount's own setting: only the driver of Spark on Kubernetes uses the API.
    pod["automountServiceAccountToken"] = profile.type is JobType.SPARK_ON_KUBERNETES
    described: Object = {"labels": labels}
    template = _template(profile)
    if template is not None:
        described["annotations"] = {TEMPLATE_ANNOTATION: json.dumps(template)}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": object_names.plan_job(metadata.name, run),
            "namespace": metadata.namespace,
            "labels": labels,
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": owner.kind, "name": owner.metadata.name, "uid": owner.metadata.uid}
            ],
        },
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": profile.timeout_seconds,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": described, "spec": pod},
        },
    }


def run_labels(policy: LeadershipPolicy, run: str) -> dict[str, str]:
    """The labels of a run's Job and pods."""
    return {
        object_names.POLICY_LABEL: object_names.legal(policy.metadata.name),
        object_names.RUN_LABEL: object_names.legal(run),
    }


def _container(name: str, command: list[str], settings: LoadSettings, run: str) -> Object:
    store, profile = settings.store, settings.profile
    mounts = [{"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108 - the pod's own
    if store.persistent_volume_claim is not None:
        mounts.append({"name": HISTORY, "mountPath": store.uri})
    if _template(profile) is not None:
        mounts.append({"name": TEMPLATES, "mountPath": TEMPLATE_DIRECTORY})
    container: Object = {
        "name": name,
        "image": profile.image,
        "command": command[:3],
        "args": command[3:],
        "env": _environment(settings, run),
        "resources": _resources(profile.resources),
        "volumeMounts": mounts,
        # The end of the log contains the error, and reading it needs no permission for logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if store.environment_secret_name is not None:
        container["envFrom"] = [{"secretRef": {"name": store.environment_secret_name}}]
    return container


def _environment(settings: LoadSettings, run: str) -> list[Object]:
    profile = settings.profile
    conf = {"spark.local.dir": "/tmp/spark"}  # noqa: S108 - the pod's own
    variables: list[Object] = [{"name": "HOME", "value": "/tmp"}]  # noqa: S108
    if profile.type is JobType.SPARK_ON_KUBERNETES:
        variables += [_downward("POD_IP", "status.podIP"), _downward("POD_NAME", "metadata.name")]
        variables.append(_downward("POD_NAMESPACE", "metadata.namespace"))
        conf |= _executor_settings(profile, run) | _executor_volume(settings.store)
    conf |= {name: value.replace("$(", "$$(") for name, value in profile.spark_conf.items()}
    return [*variables, {"name": "PYSPARK_SUBMIT_ARGS", "value": submit_arguments(conf)}]


def _executor_settings(profile: JobProfile, run: str) -> dict[str, str]:
    """Settings by which the driver creates its executors and they find it. Kubernetes fills in the pod's values."""
    each = profile.executors.resources
    settings = {
        "spark.driver.host": "$(POD_IP)",
        # Executors connect to this address (spark.kubernetes.executor.useDriverPodIP).
        "spark.driver.bindAddress": "$(POD_IP)",
        "spark.kubernetes.namespace": "$(POD_NAMESPACE)",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",
        "spark.kubernetes.container.image": str(profile.image),
        "spark.kubernetes.authenticate.serviceAccountName": str(profile.service_account_name),
        # Spark makes a secret for each run and gives it to the executors; traffic between them and the driver is
        # encrypted with a key that is derived from it.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.executor.instances": str(profile.executors.instances),
        "spark.executor.cores": str(cores(each.cpu)),
        "spark.kubernetes.executor.request.cores": each.cpu,
        "spark.kubernetes.executor.limit.cores": each.cpu,
        "spark.executor.memory": f"{heap_mebibytes(each.memory)}m",
        # Memory of Python and Arrow in addition to the JVM.
        "spark.executor.memoryOverheadFactor": "0.66",
        f"spark.kubernetes.executor.label.{object_names.RUN_LABEL}": object_names.legal(run),
    }
    if _template(profile) is not None:
        settings["spark.kubernetes.executor.podTemplateFile"] = f"{TEMPLATE_DIRECTORY}/{TEMPLATE}"
    return settings


def _template(profile: JobProfile) -> dict[str, Any] | None:
    """Pod template of the executors, if the profile has executors and a template."""
    return profile.executors.pod_template if profile.type is JobType.SPARK_ON_KUBERNETES else None


def _executor_volume(store: LoadStore) -> dict[str, str]:
    """The claim, if there is one, mounted in the executors as in the driver."""
    if store.persistent_volume_claim is None:
        return {}
    volume = f"spark.kubernetes.executor.volumes.persistentVolumeClaim.{HISTORY}"
    return {f"{volume}.mount.path": store.uri, f"{volume}.options.claimName": store.persistent_volume_claim}


def _volumes(settings: LoadSettings) -> list[Object]:
    volumes: list[Object] = [{"name": SCRATCH, "emptyDir": {}}]
    claim = settings.store.persistent_volume_claim
    if claim is not None:
        volumes.append({"name": HISTORY, "persistentVolumeClaim": {"claimName": claim}})
    if _template(settings.profile) is not None:
        field = {"fieldPath": f"metadata.annotations['{TEMPLATE_ANNOTATION}']"}
        volumes.append({"name": TEMPLATES, "downwardAPI": {"items": [{"path": TEMPLATE, "fieldRef": field}]}})
    return volumes


def _resources(given: PodResources) -> dict[str, Any]:
    """Equal requests and limits: the JVM counts its cores by the limit."""
    same = {"cpu": given.cpu, "memory": given.memory}
    return {"requests": same, "limits": dict(same)}


def _downward(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
