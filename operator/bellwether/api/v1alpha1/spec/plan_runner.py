"""``spec.rebalance`` runner and history: Kubernetes Job, Spark on Kubernetes or local process, and the store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Matching, Model, Rule, as_map, integer

StoreUri = Annotated[
    str,
    Matching(
        r"^(/|[a-z][a-z0-9+.-]*://)[^\s@]*$",
        "must be an absolute path or a URI without user or password, such as s3://bucket/bellwether",
        1024,
    ),
]
ObjectName = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        "must be the name of an object: lower case letters, digits, '-' and '.'",
        253,
    ),
]
Image = Annotated[str, Matching(r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", "must be the name of a container image", 512)]
Quantity = Annotated[
    str,
    Matching(
        "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$", "must be a Kubernetes quantity, such as 2, 500m or 4Gi", 20
    ),
]
ConfName = Annotated[
    str, Matching(r"^spark\.[A-Za-z0-9._-]+$", "must be the name of a Spark setting, such as spark.driver.memory", 253)
]
ConfigKey = Annotated[
    str, Matching("^[A-Za-z0-9._-]+$", "must be a key of the ConfigMap: letters, digits, '-', '_' and '.'", 253)
]


class RunnerType(StrEnum):
    """How a plan is computed."""

    JOB = "Job"
    SPARK_ON_KUBERNETES = "SparkOnKubernetes"
    PROCESS = "Process"


class HistoryStore(Model):
    """Store for load samples and plans."""

    uri: Annotated[
        StoreUri,
        Field(
            description="Absolute path of a directory, or a URI that pyarrow supports: s3://, gs://, abfs://, hdfs://,"
            " file://."
        ),
    ]
    days: int = integer(14, 1, 366, "Days of samples that a plan uses.")


class Resources(Model):
    """CPU and memory of one pod."""

    cpu: Annotated[Quantity, Field(description="CPU request and limit of the pod, and number of cores for Spark.")] = (
        "2"
    )
    memory: Annotated[Quantity, Field(description="Memory request and limit of the pod.")] = "4Gi"


class SparkSetting(Model):
    """One Spark setting."""

    name: Annotated[ConfName, Field(description="Name of the setting.")]
    value: str = Field(max_length=4096, description="Value of the setting.")


class SecretRef(Model):
    """A Secret in the policy's namespace."""

    name: Annotated[ObjectName, Field(description="Name of the Secret.")]


class ClaimRef(Model):
    """A PersistentVolumeClaim in the policy's namespace."""

    claim_name: Annotated[ObjectName, Field(description="Name of the PersistentVolumeClaim.")]


class TemplateRef(Model):
    """A pod template in a ConfigMap in the policy's namespace."""

    name: Annotated[ObjectName, Field(description="Name of the ConfigMap.")]
    key: Annotated[
        ConfigKey, Field(description="Key in the data of the ConfigMap that contains the pod template as YAML.")
    ] = "template.yaml"


class Executors(Model):
    """Spark executors on Kubernetes."""

    instances: int = integer(2, 1, 1000, "Number of executor pods.")
    resources: Resources = Field(default_factory=Resources, description="CPU and memory of each executor.")
    pod_template_ref: TemplateRef | None = Field(
        default=None,
        description="Pod template of the executors, for example for node selectors, tolerations and volumes. If"
        " unset, there is none.",
    )


class Runner(Model):
    """How and with which resources plans are computed."""

    type: RunnerType = Field(
        default=RunnerType.JOB,
        description="Job runs Spark in one pod (local[*]); SparkOnKubernetes runs it in that pod and in executor"
        " pods; Process runs it in the operator's container and needs no image.",
    )
    image: Image | None = Field(
        default=None, description="Container image with Bellwether and Spark. Required unless type is Process."
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount of the job's pods. SparkOnKubernetes requires one that may create pods. If"
        " unset, the namespace's default.",
    )
    resources: Resources = Field(default_factory=Resources, description="CPU and memory of the job's pod.")
    spark_conf: tuple[SparkSetting, ...] = Field(
        default=(), max_length=64, description="Spark settings, passed unchanged.", json_schema_extra=as_map("name")
    )
    environment_secret_ref: SecretRef | None = Field(
        default=None,
        description="Secret whose keys become environment variables of the job, for example credentials of an"
        " object store. If unset, there are none.",
    )
    persistent_volume_claim: ClaimRef | None = Field(
        default=None,
        description="PersistentVolumeClaim of the store, mounted at the path in history.uri. If unset, none is"
        " mounted.",
    )
    executors: Executors = Field(
        default_factory=Executors, description="Spark executors; used only with type SparkOnKubernetes."
    )
    timeout_seconds: int = integer(3600, 60, 86400, "Maximum duration of the job in seconds; after that it has failed.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.type != 'SparkOnKubernetes' || (has(self.serviceAccountName) && self.serviceAccountName != '')",
            message="must be a ServiceAccount that may create pods, because type is SparkOnKubernetes: set it",
            holds=lambda r: r.type is not RunnerType.SPARK_ON_KUBERNETES or bool(r.service_account_name),
            field="serviceAccountName",
        ),
    )


def absolute_path(uri: str) -> bool:
    """Whether a store URI is an absolute path."""
    return uri.startswith("/")
