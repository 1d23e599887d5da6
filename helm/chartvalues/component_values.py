"""Values of the chart's components: operator, probers, webhook, sidecars, sampler and Spark jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bellwether import documentation
from bellwether.core.model.quarantine_order import MAX_HOLD_SECONDS, RETURN_SECONDS
from bellwether.probes.prober_commands import PROBERS
from chartvalues.shared_values import (
    KubernetesObject,
    Labels,
    Model,
    Name,
    Namespace,
    OptionalName,
    OptionalNamespace,
    Port,
    RegistryName,
    Resources,
    Scheduling,
    ServiceAccount,
    Vantage,
    Workload,
    requests_and_limits,
)

BrokerId = Annotated[int, Field(ge=0, le=2**31 - 1)]
UserId = Annotated[int, Field(ge=1)]
VolumeName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
_PROBERS = {name.capitalize(): one for name, one in PROBERS.items() if not one.sidecar}
_PLACED = [name for name, one in _PROBERS.items() if not one.default]
Url = Annotated[str, Field(pattern=r"^(https?://\S+)?$")]


class Disruption(Model):
    """PodDisruptionBudget: how many pods may be evicted at a time."""

    enabled: bool = Field(default=True, description="Create a PodDisruptionBudget if there are two or more replicas.")
    max_unavailable: int = Field(default=1, ge=1, le=10, description="Pods that may be evicted at a time.")


class Spread(Model):
    """Topology spread constraints."""

    enabled: bool = Field(default=True, description="Spread the replicas over zones and nodes.")
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = Field(
        default="ScheduleAnyway", description="Behaviour if that is impossible: ScheduleAnyway or DoNotSchedule."
    )


class Operator(Workload):
    """The operator."""

    replicas: int = Field(
        default=2, ge=0, le=10, description="One replica is active for each Kafka cluster; the others are on standby."
    )
    lease_duration_seconds: int = Field(
        default=10, ge=7, le=300, description="Seconds until a Lease that is not renewed expires."
    )
    lease_renew_seconds: float = Field(
        default=2, ge=0.5, le=60, description="Seconds between renewals; at most a third of the duration."
    )
    metrics_port: Port = Field(default=9464, description="Port of /metrics.")
    health_port: Port = Field(default=8080, description="Port of /healthz and /readyz.")
    environment_secret_name: OptionalName = Field(
        default="",
        description="Secret whose keys become environment variables, such as store credentials.",
    )
    termination_grace_period_seconds: int = Field(
        default=40, ge=1, le=600, description="Seconds to finish the current batch and to release the Leases."
    )
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("100m", "256Mi", "1Gi"), description="CPU and memory."
    )
    service_account: ServiceAccount = Field(default_factory=ServiceAccount, description="ServiceAccount.")
    disruption_budget: Disruption = Field(default_factory=Disruption, description="PodDisruptionBudget.")
    topology_spread: Spread = Field(default_factory=Spread, description="Topology spread constraints of the replicas.")


class ProberDefaults(Workload):
    """Defaults for all probers."""

    metrics_port: Port = Field(default=9464, description="Port of /metrics.")
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("50m", "128Mi", "512Mi"), description="CPU and memory."
    )


Served = Annotated[
    list[Namespace], Field(description="Namespaces whose policies it serves. Empty: those that the release manages.")
]
Shards = Annotated[
    int,
    Field(
        ge=1,
        le=100,
        description="Deployments that share the policies, each with its part by a hash of their names, where one"
        " process is not enough.",
    ),
]


class Prober(Scheduling):
    """One prober of every policy, with its own Deployment and ServiceAccount."""

    kind: Literal[*_PROBERS] = Field(description=f"Type of the prober: {', '.join(_PROBERS)}.")  # type: ignore[valid-type]
    namespaces: Served = Field(default_factory=list)
    vantage: Vantage = Field(
        default="",
        description="Stable name of the place that it probes from, such as eu-west-1a. Required for"
        f" {', '.join(_PLACED)}.",
    )
    plugin: str = Field(default="", max_length=63, description="Signal type of the plug-in; required for Plugin.")
    internal: bool = Field(
        default=True,
        description="Whether the prober can reach the brokers' internal listener, the control of Reachability.",
    )
    zones: list[Name] = Field(
        default_factory=list, description="Zones (topology.kubernetes.io/zone) in which it must run. Empty: any."
    )
    replicas: int = Field(
        default=1, ge=0, le=5, description="For each policy one replica reports, the others are on standby."
    )
    shards: Shards = 1
    secret_names: list[Name] = Field(
        default_factory=list, description="Secrets that it may read. Empty: those of the operator."
    )
    image: str = Field(
        default="",
        pattern=r"^\S*$",
        description="Reference of another image, such as one with a plug-in. Empty: that of image.",
    )
    service_account_annotations: Labels = Field(
        default_factory=dict, description="Annotations of its ServiceAccount, for example for a cloud identity."
    )
    resources: Resources = Field(default_factory=Resources, description="CPU and memory. Empty: prober.resources.")
    extra_args: list[str] = Field(default_factory=list, description="Further arguments of the command.")


class IssuerReference(Model):
    """An issuer of cert-manager."""

    name: OptionalName = Field(default="", description="Name of the issuer. Required.")
    kind: Literal["Issuer", "ClusterIssuer"] = Field(default="Issuer", description="Issuer or ClusterIssuer.")
    group: str = Field(default="cert-manager.io", min_length=1, description="API group of the issuer.")


class Certificate(Model):
    """A Certificate of cert-manager for the Service of the webhook."""

    enabled: bool = Field(default=False, description="Create it; cert-manager must be installed.")
    issuer_ref: IssuerReference = Field(default_factory=IssuerReference, description="Its issuer.")
    duration: str = Field(default="2160h", pattern=r"^[0-9]+h$", description="Validity of the certificate.")
    renew_before: str = Field(default="720h", pattern=r"^[0-9]+h$", description="Time before its end to renew it.")


class DataVolume(Model):
    """A volume with a log directory of the broker."""

    name: VolumeName = Field(description="Name of the volume in the broker's pod, such as data-0.")
    directory: str = Field(
        default="",
        pattern=r"^(/\S*)?$",
        description="Mount path of the volume, the same as in the broker. Empty: /var/lib/kafka/<name>.",
    )


class SidecarAccount(Model):
    """A ServiceAccount of broker pods with sidecars. What is null is as for all accounts."""

    name: Name = Field(description="ServiceAccount of the brokers' pods; Strimzi's is <cluster>-kafka.")
    namespace: OptionalNamespace = Field(
        default="", description="Namespace of the ServiceAccount. Empty: the policy's."
    )
    policy: Name = Field(description="Name of the LeadershipPolicy.")
    policy_namespace: OptionalNamespace = Field(default="", description="The policy's namespace. Empty: the release's.")
    broker_ids: list[BrokerId] = Field(
        default_factory=list,
        description="Ids of these brokers: their quarantine agents may read no other order. Empty: they may read every"
        " Lease of the release's namespace. If it is one id, they may report of it whatever their pods' names.",
    )
    first_broker_ids: dict[str, BrokerId] = Field(
        default_factory=dict,
        description="Where pods' numbers are not broker ids: the id of pod 0, by the name of its StatefulSet, such as"
        " {kafka-broker: 100}. Used by admission, which sees no disk; the sidecars read the id on the disk.",
    )
    data_volumes: list[DataVolume] | None = Field(
        default=None, description="Replaces sidecars.dataVolumes for these brokers."
    )
    run_as_user: UserId | None = Field(default=None, description="Replaces sidecars.runAsUser for these brokers.")
    broker_run_as_user: UserId | None = Field(
        default=None, description="Replaces sidecars.quarantineAgent.runAsUser for these brokers."
    )
    external_port: Port | None = Field(default=None, description="Replaces sidecars.externalPort for these brokers.")
    ignored_networks: list[str] | None = Field(
        default=None, description="Replaces sidecars.ignoredNetworks for these brokers."
    )
    resources: Resources | None = Field(default=None, description="Replaces sidecars.resources for these brokers.")


class QuarantineAgent(Model):
    """The quarantine agent: holds its broker on the operator's order (spec.quarantine)."""

    enabled: bool = Field(
        default=False,
        description="Add the quarantine agent to the sidecars. inject then sets shareProcessNamespace of the pod and"
        " the failureThreshold of the broker's liveness probe; the containers to paste say what to set.",
    )
    run_as_user: UserId | None = Field(
        default=None,
        description="User id of the broker's process: only this user may signal it without privileges. Unset: with"
        " inject the runAsUser of the broker's container or pod; else 1001, the user of Strimzi's image.",
    )
    max_hold_seconds: int = Field(
        default=MAX_HOLD_SECONDS,
        ge=1,
        le=86400,
        description="Longest hold in seconds, whatever an order says. A longer spec.quarantine.limitSeconds needs"
        f" a higher value. inject makes liveness probes tolerate {RETURN_SECONDS} s more.",
    )
    metrics_port: Port = Field(default=9467, description="Port of /metrics.")


class SidecarWebhook(Workload):
    """The admission webhook that adds the sidecars: a Deployment in each namespace with broker pods."""

    replicas: int = Field(default=2, ge=0, le=10, description="Number of pods. While none runs, no sidecars are added.")
    port: Port = Field(default=9443, description="Port of the webhook.")
    metrics_port: Port = Field(default=9464, description="Port of /metrics, /healthz and /readyz.")
    certificate: Certificate = Field(
        default_factory=Certificate,
        description="cert-manager Certificate of the webhook. If not enabled, the chart makes a certificate.",
    )
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("10m", "64Mi", "256Mi"), description="CPU and memory."
    )


class Sidecars(Model):
    """Sidecars of brokers: permissions for their accounts, and containers to inject or to paste."""

    accounts: list[SidecarAccount] = Field(
        default_factory=list,
        description="ServiceAccounts of broker pods with sidecars. Empty: no sidecars. An item may replace the values"
        " below that differ between Kafka clusters.",
    )
    inject: bool = Field(
        default=False,
        description="Add the sidecars to broker pods when they are created; needed for Strimzi. If false, a ConfigMap"
        " has the containers to paste into the pod template.",
    )
    injection: Literal["auto", "policy", "webhook"] = Field(
        default="auto",
        description="What adds them: policy is a MutatingAdmissionPolicy, which API servers serve by default from 1.36;"
        " webhook works on every version; auto is policy where the API server serves it, else webhook.",
    )
    webhook: SidecarWebhook = Field(
        default_factory=SidecarWebhook, description="The admission webhook, for injection by webhook."
    )
    data_volumes: list[DataVolume] = Field(
        default=[DataVolume(name="data")],
        description="Volumes with the broker's log directories; several for JBOD storage. One container measures all."
        " Empty: the webhook finds them in pods of Strimzi's, and the port of a listener named external.",
    )
    run_as_user: UserId = Field(
        default=10001,
        description="User id of the sidecars. Without an fsGroup that may write, use the user id of the broker.",
    )
    external_port: Port = Field(default=9094, description="Container port of the external listener.")
    ignored_networks: list[str] = Field(
        default_factory=list,
        description="Networks (CIDR) whose connections are ignored, such as those of health checks.",
    )
    pod_selector: Labels = Field(
        default_factory=dict,
        description="Labels that the broker pods of all accounts have, for inject and the PodMonitor.",
    )
    metrics_ports: list[Port] = Field(
        default=[9465, 9466],
        min_length=2,
        max_length=2,
        description="Ports of /metrics of the storage and the self prober.",
    )
    quarantine_agent: QuarantineAgent = Field(
        default_factory=QuarantineAgent, description="The quarantine agent, the sidecar that can hold its broker."
    )
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("20m", "96Mi", "256Mi"), description="CPU and memory."
    )


class Consumption(Model):
    """A Prometheus with consumption metrics."""

    url: Url = Field(default="", description="URL of Prometheus. Empty: consumption is not measured.")
    query: str = Field(
        default="",
        description="PromQL query with one series per topic; $namespace and $policy are replaced by those of each"
        " policy, and it must contain one of them. Required with url.",
    )
    request_query: str = Field(
        default="", description="The same for requests per second. Empty: requests are not measured."
    )


class Sampler(Workload):
    """The sampler of partition loads."""

    enabled: bool = Field(default=False, description="Enable it.")
    namespaces: Served = Field(default_factory=list)
    shards: Shards = 1
    period_seconds: int = Field(default=60, ge=1, le=3600, description="Seconds between rounds.")
    metrics_port: Port = Field(default=9464, description="Port of /metrics.")
    persistent_volume_claim: OptionalName = Field(
        default="", description="PersistentVolumeClaim of the store. Empty: the store is not a directory."
    )
    mount_path: str = Field(
        default="/var/lib/bellwether", pattern=r"^/\S*$", description="Mount path of the claim: the store's uri."
    )
    environment_secret_name: OptionalName = Field(
        default="",
        description="Secret whose keys become environment variables, such as credentials of an object store.",
    )
    consumption: Consumption = Field(
        default_factory=Consumption, description="Prometheus with metrics of what consumers read."
    )
    secret_names: list[Name] = Field(
        default_factory=list, description="Secrets that it may read. Empty: those of the operator."
    )
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("100m", "256Mi", "1Gi"), description="CPU and memory."
    )
    service_account: ServiceAccount = Field(default_factory=ServiceAccount, description="ServiceAccount.")


class SparkImage(Model):
    """The image of the Spark jobs."""

    registry: RegistryName = Field(default="", description="Registry of this image alone. Empty: as for image.")
    repository: str = Field(default="bellwether-spark", min_length=1, description="Repository of the image.")
    tag: str = Field(default="", description="Tag of the image. Empty: the chart's appVersion.")


class Spark(Model):
    """Load plans in Jobs: permissions of the operator, and an image and an account for Spark."""

    enabled: bool = Field(default=False, description="Permit the operator to create Jobs for LeaderRebalances.")
    namespaces: list[Namespace] = Field(
        default_factory=list, description="Namespaces of these LeaderRebalances. Empty: the release's."
    )
    image: SparkImage = Field(default_factory=SparkImage, description="Image of the jobs.")
    service_account: ServiceAccount = Field(
        default_factory=ServiceAccount, description="ServiceAccount of the Spark driver, which creates the executors."
    )


class Policy(Model):
    """A LeadershipPolicy, a SignalSource or a LeaderRebalance of the release."""

    name: Name = Field(description="Name of the object.")
    namespace: OptionalNamespace = Field(default="", description="Namespace of the object. Empty: the release's.")
    labels: Labels = Field(default_factory=dict, description="Labels of the object.")
    annotations: Labels = Field(default_factory=dict, description="Annotations of the object.")
    spec: KubernetesObject = Field(description=f"Spec of the object; see {documentation.page('reference/crds.md')}.")
