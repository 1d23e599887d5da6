"""Value types that all components share: names, quantities, scheduling, service accounts.

Called by the other models of this package. Every field has a description: it becomes the comment in ``values.yaml`` and
the row of the README.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
OptionalName = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
OptionalNamespace = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", max_length=63)]
Vantage = Annotated[str, Field(max_length=253, pattern=r"^\S*$")]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]
Port = Annotated[int, Field(ge=1, le=65535)]
RegistryName = Annotated[str, Field(pattern=r"^([^/\s]+(/[^/\s]+)*)?$")]
Labels = dict[str, str]
KubernetesObject = dict[str, Any]
"""Part of a Kubernetes object; the API server validates it."""


class Model(BaseModel):
    """Base of all values: an unknown key is an error, so that a typing error is found."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True)


class Resources(Model):
    """Resource requests and limits of a container."""

    requests: dict[str, Quantity] = Field(default_factory=dict, description="Resource requests.")
    limits: dict[str, Quantity] = Field(default_factory=dict, description="Resource limits.")


def requests_and_limits(cpu: str, memory: str, memory_limit: str) -> Resources:
    """Requests, and a memory limit. No CPU limit: a throttled prober reports late."""
    return Resources(requests={"cpu": cpu, "memory": memory}, limits={"memory": memory_limit})


class Scheduling(Model):
    """Where pods may run, and their priority."""

    priority_class_name: OptionalName = Field(default="", description="PriorityClass of the pods.")
    node_selector: Labels = Field(default_factory=dict, description="Node labels that the pods require.")
    tolerations: list[KubernetesObject] = Field(default_factory=list, description="Tolerations of the pods.")
    affinity: KubernetesObject = Field(default_factory=dict, description="Affinity of the pods.")


class Workload(Scheduling):
    """Settings of the pods of any component."""

    resources: Resources = Field(default_factory=Resources, description="CPU and memory.")
    pod_labels: Labels = Field(default_factory=dict, description="Additional labels of the pods.")
    pod_annotations: Labels = Field(default_factory=dict, description="Additional annotations of the pods.")
    extra_args: list[str] = Field(default_factory=list, description="Additional command-line arguments.")
    extra_env: list[KubernetesObject] = Field(
        default_factory=list, description="Additional environment variables (EnvVar objects)."
    )
    extra_volumes: list[KubernetesObject] = Field(default_factory=list, description="Additional volumes of the pods.")
    extra_volume_mounts: list[KubernetesObject] = Field(
        default_factory=list, description="Mounts of the additional volumes."
    )
    extra_containers: list[KubernetesObject] = Field(
        default_factory=list, description="Additional containers of the pods (Container objects)."
    )
    init_containers: list[KubernetesObject] = Field(
        default_factory=list, description="Init containers of the pods (Container objects)."
    )
    topology_spread_constraints: list[KubernetesObject] = Field(
        default_factory=list,
        description="Topology spread constraints of the pods. Without a labelSelector: of the pods of this Deployment.",
    )
    strategy: KubernetesObject = Field(
        default_factory=dict, description="Strategy of the Deployment. Empty: that of the component."
    )


class ServiceAccount(Model):
    """The ServiceAccount of a component's pods."""

    create: bool = Field(default=True, description="Create the ServiceAccount. If false, it must exist.")
    name: OptionalName = Field(
        default="", description="Name of the ServiceAccount. Empty: generated from the release name."
    )
    annotations: Labels = Field(default_factory=dict, description="Annotations, for example for a cloud identity.")
