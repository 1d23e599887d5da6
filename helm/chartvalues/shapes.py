"""What the values of every component share: names, quantities, where a pod may run, whose account it has.

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
Labels = dict[str, str]
Loose = dict[str, Any]
"""An object of Kubernetes' own API, which the API server checks."""


class Model(BaseModel):
    """Base of all values: an unknown key is an error, so that a slip of the pen is not passed over."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True)


class Resources(Model):
    """What a container asks for, and may use at most."""

    requests: dict[str, Quantity] = Field(default_factory=dict, description="What is set aside for it.")
    limits: dict[str, Quantity] = Field(default_factory=dict, description="What it may use at most.")


def asking(cpu: str, memory: str, memory_limit: str) -> Resources:
    """No limit of CPU: a throttled prober is a late prober."""
    return Resources(requests={"cpu": cpu, "memory": memory}, limits={"memory": memory_limit})


class Scheduling(Model):
    """Where pods may run, and which come first."""

    priority_class_name: OptionalName = Field(default="", description="PriorityClass of the pods.")
    node_selector: Labels = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: list[Loose] = Field(default_factory=list, description="Taints that are tolerated.")
    affinity: Loose = Field(default_factory=dict, description="Affinity, as Kubernetes has it.")


class Workload(Scheduling):
    """What may be said of the pods of any component."""

    resources: Resources = Field(default_factory=Resources, description="CPU and memory.")
    pod_labels: Labels = Field(default_factory=dict, description="Further labels of the pods.")
    pod_annotations: Labels = Field(default_factory=dict, description="Further annotations of the pods.")
    extra_args: list[str] = Field(default_factory=list, description="Further arguments of the command.")
    extra_env: list[Loose] = Field(default_factory=list, description="Further variables, as Kubernetes has them.")
    extra_volumes: list[Loose] = Field(default_factory=list, description="Further volumes of the pods.")
    extra_volume_mounts: list[Loose] = Field(default_factory=list, description="Where they are mounted.")


class ServiceAccount(Model):
    """The account that a component's pods have."""

    create: bool = Field(default=True, description="Make it. Otherwise it has to be there.")
    name: OptionalName = Field(default="", description="Its name. Empty: made from the release's.")
    annotations: Labels = Field(default_factory=dict, description="Annotations, such as those of a cloud's identity.")


class SecretKey(Model):
    """A key of a Secret in the release's namespace."""

    name: OptionalName = Field(default="", description="Name of the Secret.")
    key: str = Field(default="token", min_length=1, max_length=253, description="Key of its data.")
