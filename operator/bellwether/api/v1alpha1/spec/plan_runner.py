"""``spec.rebalance`` runner and history: Kubernetes Job, Spark on Kubernetes or process, and the store."""

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
    Matching("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "must be the name of an object: lower case, digits, '-' and '.'", 253),
]
Image = Annotated[str, Matching(r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", "must be the name of an image", 512)]
Quantity = Annotated[
    str, Matching("^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$", "must be a quantity, such as 2, 500m or 4Gi", 20)
]
ConfName = Annotated[
    str, Matching(r"^spark\.[A-Za-z0-9._-]+$", "must be the name of a Spark setting, such as spark.driver.memory", 253)
]
ConfigKey = Annotated[
    str, Matching("^[A-Za-z0-9._-]+$", "must be a key of the ConfigMap: letters, digits, '-', '_' and '.'", 253)
]


class RunnerType(StrEnum):
    """What runs the job."""

    JOB = "Job"
    SPARK_ON_KUBERNETES = "SparkOnKubernetes"
    PROCESS = "Process"


class HistoryStore(Model):
    """Where samples, loads, problems and plans are kept."""

    uri: Annotated[
        StoreUri,
        Field(description="A directory, or a URI that pyarrow reads: s3://, gs://, abfs://, hdfs://, file://."),
    ]
    days: int = integer(14, 1, 366, "How many days of samples a plan looks back on.")


class Resources(Model):
    """What one pod of the job may use."""

    cpu: Annotated[Quantity, Field(description="CPU that is requested, and the limit: so many cores Spark uses.")] = "2"
    memory: Annotated[Quantity, Field(description="Memory that is requested, and the limit.")] = "4Gi"


class SparkSetting(Model):
    """One setting of Spark."""

    name: Annotated[ConfName, Field(description="Name of the setting.")]
    value: str = Field(max_length=4096, description="Its value.")


class SecretRef(Model):
    """A Secret in the policy's own namespace."""

    name: Annotated[ObjectName, Field(description="Name of the Secret.")]


class ClaimRef(Model):
    """A PersistentVolumeClaim in the policy's own namespace."""

    claim_name: Annotated[ObjectName, Field(description="Name of the claim.")]


class TemplateRef(Model):
    """A pod template in a ConfigMap of the policy's own namespace."""

    name: Annotated[ObjectName, Field(description="Name of the ConfigMap.")]
    key: Annotated[ConfigKey, Field(description="Key of its data that holds the template, YAML.")] = "template.yaml"


class Executors(Model):
    """The executors of Spark on Kubernetes."""

    instances: int = integer(2, 1, 1000, "How many executor pods there are.")
    resources: Resources = Field(default_factory=Resources, description="What each executor may use.")
    pod_template_ref: TemplateRef | None = Field(
        default=None, description="Template of the executors' pods: node selectors, tolerations, volumes. Absent: none."
    )


class Runner(Model):
    """What computes a plan."""

    type: RunnerType = Field(
        default=RunnerType.JOB,
        description="Job runs Spark in one pod (local[*]); SparkOnKubernetes in that pod and in executor pods; Process"
        " beside the operator, for where there is no image.",
    )
    image: Image | None = Field(default=None, description="Image that holds Bellwether with Spark.")
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount of the job's pods. SparkOnKubernetes needs one that may make pods. Absent: the"
        " namespace's default.",
    )
    resources: Resources = Field(default_factory=Resources, description="What the job's pod may use.")
    spark_conf: tuple[SparkSetting, ...] = Field(
        default=(), max_length=64, description="Settings of Spark, as they are.", json_schema_extra=as_map("name")
    )
    environment_secret_ref: SecretRef | None = Field(
        default=None, description="Secret whose keys become variables of the job: credentials of an object store, say."
    )
    persistent_volume_claim: ClaimRef | None = Field(
        default=None, description="Claim that holds the history, mounted at its path. Absent: none is mounted."
    )
    executors: Executors = Field(default_factory=Executors, description="Executors, for SparkOnKubernetes alone.")
    timeout_seconds: int = integer(3600, 60, 86400, "How long the job may take; then it has failed.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.type != 'SparkOnKubernetes' || (has(self.serviceAccountName) && self.serviceAccountName != '')",
            message="must name one that may make pods where type is SparkOnKubernetes",
            holds=lambda r: r.type is not RunnerType.SPARK_ON_KUBERNETES or bool(r.service_account_name),
            field="serviceAccountName",
        ),
    )


def absolute_path(uri: str) -> bool:
    """Whether a store is a directory."""
    return uri.startswith("/")
