"""Job profile of the operator configuration: how and with which resources plans are computed, and who may use it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from bellwether.api.config.field_types import Checked, Namespaces, ObjectName
from bellwether.api.v1alpha1.base_model import Model, integer, refusal

Image = Annotated[str, Checked(r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", "must be the name of a container image", 512)]
Quantity = Annotated[
    str,
    Checked(
        "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$", "must be a Kubernetes quantity, such as 2, 500m or 4Gi", 20
    ),
]
ConfName = Annotated[
    str, Checked(r"^spark\.[A-Za-z0-9._-]+$", "must be the name of a Spark setting, such as spark.driver.memory", 253)
]


class JobType(StrEnum):
    """Where a plan is computed."""

    JOB = "Job"
    SPARK_ON_KUBERNETES = "SparkOnKubernetes"


class PodResources(Model):
    """CPU and memory of one pod."""

    cpu: Annotated[Quantity, Field(description="CPU request and limit of the pod, and number of cores for Spark.")] = (
        "2"
    )
    memory: Annotated[Quantity, Field(description="Memory request and limit of the pod.")] = "4Gi"


class Executors(Model):
    """Spark executors on Kubernetes."""

    instances: int = integer(2, 1, 1000, "Number of executor pods.")
    resources: PodResources = Field(default_factory=PodResources, description="CPU and memory of each executor.")
    pod_template: dict[str, Any] | None = Field(
        default=None, description="Pod manifest that executors are made from: node selectors, tolerations, volumes."
    )


class JobProfile(Model):
    """How and with which resources plans are computed."""

    namespaces: Annotated[
        Namespaces, Field(description="Namespaces whose policies may use the profile; ['*'] for all.")
    ]
    type: JobType = Field(
        default=JobType.JOB,
        description="Job: Spark in one pod (local[*]). SparkOnKubernetes: that pod and executor pods.",
    )
    image: Annotated[Image, Field(description="Container image with Bellwether and Spark.")]
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount of the job's pods, in the policy's namespace. SparkOnKubernetes requires one that"
        " may create pods.",
    )
    resources: PodResources = Field(default_factory=PodResources, description="CPU and memory of the job's pod.")
    spark_conf: dict[ConfName, str] = Field(default_factory=dict, description="Spark settings, passed unchanged.")
    executors: Executors = Field(default_factory=Executors, description="Spark executors, for SparkOnKubernetes.")
    timeout_seconds: int = integer(3600, 60, 86400, "Maximum duration of the job in seconds; after that it has failed.")

    def model_post_init(self, _context: Any) -> None:
        """Reject a profile that lacks what its type requires."""
        if self.type is JobType.SPARK_ON_KUBERNETES and self.service_account_name is None:
            text = "must be a ServiceAccount that may create pods, because type is SparkOnKubernetes: set it"
            raise refusal(text, "serviceAccountName")
