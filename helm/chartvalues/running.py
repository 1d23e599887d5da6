"""The values of what the chart runs: operator, probers, webhook, sampler, and what it prepares for Spark."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chartvalues.shapes import (
    Labels,
    Loose,
    Model,
    Name,
    Namespace,
    OptionalName,
    OptionalNamespace,
    Port,
    Resources,
    Scheduling,
    SecretKey,
    ServiceAccount,
    Vantage,
    Workload,
    asking,
)

Url = Annotated[str, Field(pattern=r"^(https?://\S+)?$")]


class Disruption(Model):
    """How many pods may be away at a time, of somebody's choice."""

    enabled: bool = Field(default=True, description="Make a PodDisruptionBudget where there are two replicas or more.")
    max_unavailable: int = Field(default=1, ge=1, le=10, description="Pods that may be evicted at a time.")


class Spread(Model):
    """How the replicas are kept apart."""

    enabled: bool = Field(default=True, description="Spread the replicas over zones and nodes.")
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = Field(
        default="ScheduleAnyway", description="What happens where that cannot be: ScheduleAnyway or DoNotSchedule."
    )


class Operator(Workload):
    """The operator."""

    replicas: int = Field(
        default=2, ge=0, le=10, description="One acts on each Kafka cluster, the others stand by and take over."
    )
    lease_namespace: OptionalNamespace = Field(
        default="",
        description="Where the Leases of Kafka clusters stand; the same for all operators of a Kubernetes cluster."
        " Empty: the release's namespace.",
    )
    lease_duration_seconds: int = Field(
        default=10, ge=7, le=300, description="How long a Lease lasts that is not renewed."
    )
    lease_renew_seconds: float = Field(
        default=2, ge=0.5, le=60, description="Time between renewals; at most a third of the duration."
    )
    metrics_port: Port = Field(default=9464, description="Port of the metrics.")
    health_port: Port = Field(default=8080, description="Port of /healthz and /readyz.")
    environment_secret_name: OptionalName = Field(
        default="", description="Secret whose keys become variables: credentials of the store of load plans, say."
    )
    termination_grace_period_seconds: int = Field(
        default=40, ge=1, le=600, description="Time to end the batch under way and to give the Leases up."
    )
    resources: Resources = Field(default_factory=lambda: asking("100m", "256Mi", "1Gi"), description="CPU and memory.")
    service_account: ServiceAccount = Field(default_factory=ServiceAccount, description="Its account.")
    disruption_budget: Disruption = Field(
        default_factory=Disruption, description="How many pods may be evicted at a time."
    )
    topology_spread: Spread = Field(default_factory=Spread, description="How its replicas are kept apart.")


class ProberDefaults(Workload):
    """What holds for every prober that does not say otherwise."""

    metrics_port: Port = Field(default=9464, description="Port of the metrics.")
    resources: Resources = Field(default_factory=lambda: asking("50m", "128Mi", "512Mi"), description="CPU and memory.")


class Prober(Scheduling):
    """One prober: a Deployment and a ServiceAccount of its own."""

    kind: Literal["Reachability", "Replication", "Prometheus", "Plugin"] = Field(description="What it looks at.")
    policy: Name = Field(description="The LeadershipPolicy that it follows.")
    namespace: OptionalNamespace = Field(default="", description="The policy's namespace. Empty: the release's.")
    vantage: Vantage = Field(
        default="",
        description="Stable name of the place that it looks from, such as eu-west-1a; needed for Reachability, and as"
        " the source of Plugin.",
    )
    plugin: str = Field(default="", max_length=63, description="The kind of signal that a Plugin measures.")
    internal: bool = Field(
        default=True, description="Whether it reaches the brokers' internal listener, which is Reachability's control."
    )
    zones: list[Name] = Field(
        default_factory=list, description="Zones (topology.kubernetes.io/zone) whose nodes it must run on. Empty: any."
    )
    replicas: int = Field(default=1, ge=0, le=5, description="One of them reports, the others stand by.")
    secret_names: list[Name] = Field(
        default_factory=list, description="Secrets that it may read. Empty: those of rbac.secretNames."
    )
    resources: Resources = Field(default_factory=Resources, description="CPU and memory. Empty: those of prober.")
    extra_args: list[str] = Field(default_factory=list, description="Further arguments of the command.")


class Alertmanager(Workload):
    """The webhook that takes alerts from Alertmanager."""

    enabled: bool = Field(default=False, description="Run it.")
    policy: OptionalName = Field(default="", description="The LeadershipPolicy that it follows.")
    namespace: OptionalNamespace = Field(default="", description="The policy's namespace. Empty: the release's.")
    replicas: int = Field(default=1, ge=0, le=5, description="One of them takes alerts, the others stand by.")
    port: Port = Field(default=9098, description="Port of the Service and of the webhook.")
    metrics_port: Port = Field(default=9464, description="Port of the metrics.")
    token_secret: SecretKey = Field(
        default_factory=SecretKey, description="The bearer token that Alertmanager must send. Needed."
    )
    tls_secret_name: OptionalName = Field(
        default="", description="Secret of type kubernetes.io/tls with the webhook's certificate. Empty: no TLS."
    )
    forget_after_seconds: int = Field(
        default=43200, ge=60, description="When an alert is forgotten that is neither repeated nor resolved."
    )
    resources: Resources = Field(default_factory=lambda: asking("50m", "128Mi", "512Mi"), description="CPU and memory.")


class SidecarAccount(Model):
    """The account of brokers' pods in which sidecars run."""

    name: Name = Field(description="ServiceAccount of the brokers' pods; Strimzi's is <cluster>-kafka.")
    namespace: OptionalNamespace = Field(default="", description="Its namespace. Empty: the policy's.")
    policy: Name = Field(description="The LeadershipPolicy that the sidecars follow.")
    policy_namespace: OptionalNamespace = Field(default="", description="The policy's namespace. Empty: the release's.")


class QuarantineAgent(Model):
    """The sidecar that pauses its broker where the policy quarantines it (spec.quarantine)."""

    enabled: bool = Field(
        default=False,
        description="Let a agent stand beside each broker. Its pod shares one process namespace: by inject, or by"
        " shareProcessNamespace: true in the pod template.",
    )
    run_as_user: int = Field(
        default=1001,
        ge=1,
        description="User of the broker's process: nobody else may signal it without privileges.",
    )
    metrics_port: Port = Field(default=9467, description="Port of its metrics.")


class Sidecars(Model):
    """What the chart gives for the sidecars of brokers: rights for their accounts, and snippets to paste."""

    accounts: list[SidecarAccount] = Field(
        default_factory=list, description="Accounts of brokers' pods that may report. Empty: no sidecars."
    )
    inject: bool = Field(
        default=False,
        description="Add the sidecars to brokers' pods as these are made, by a MutatingAdmissionPolicy; for Strimzi,"
        " whose Kafka has no field for them. Otherwise a ConfigMap holds them, to be pasted.",
    )
    data_volume: Name = Field(default="data", description="Volume of a broker's log directory, in its pod.")
    directory: str = Field(
        default="/var/lib/kafka/data", pattern=r"^/\S*$", description="Where the snippets mount that volume."
    )
    run_as_user: int = Field(
        default=10001,
        ge=1,
        description="User of the sidecars: the brokers' own where their pods have no fsGroup that may write.",
    )
    external_port: Port = Field(default=9094, description="Port that the external listener is bound to, in the pod.")
    ignore: list[str] = Field(
        default_factory=list, description="Networks whose connections do not count, such as those of health checks."
    )
    pod_selector: Labels = Field(
        default_factory=dict, description="Labels of the brokers' pods, for inject and a PodMonitor."
    )
    metrics_ports: list[Port] = Field(
        default=[9465, 9466], min_length=2, max_length=2, description="Ports of the metrics: storage's and self's."
    )
    quarantine_agent: QuarantineAgent = Field(
        default_factory=QuarantineAgent, description="The sidecar that may pause its broker."
    )
    resources: Resources = Field(default_factory=lambda: asking("20m", "96Mi", "256Mi"), description="CPU and memory.")


class Consumption(Model):
    """A Prometheus that knows how much consumers read."""

    url: Url = Field(default="", description="Its address. Empty: nobody is asked.")
    query: str = Field(default="", description="PromQL, one series for each topic. Empty: the ready-made query.")


class Sampler(Workload):
    """The sampler of loads."""

    enabled: bool = Field(default=False, description="Run it.")
    policy: OptionalName = Field(default="", description="The LeadershipPolicy whose cluster is sampled.")
    namespace: OptionalNamespace = Field(default="", description="The policy's namespace. Empty: the release's.")
    store: str = Field(
        default="", pattern=r"^((/|[a-z][a-z0-9+.-]*://)[^\s@]*)?$", description="Store. Empty: the policy's history."
    )
    period_seconds: int = Field(default=60, ge=1, le=3600, description="Time between rounds.")
    metrics_port: Port = Field(default=9464, description="Port of the metrics.")
    persistent_volume_claim: OptionalName = Field(
        default="", description="Claim that holds the history. Empty: the store is no directory."
    )
    mount_path: str = Field(default="/var/lib/bellwether", pattern=r"^/\S*$", description="Where the claim is mounted.")
    environment_secret_name: OptionalName = Field(
        default="", description="Secret whose keys become variables: credentials of an object store, say."
    )
    consumption: Consumption = Field(
        default_factory=Consumption, description="A Prometheus that knows how much consumers read."
    )
    secret_names: list[Name] = Field(
        default_factory=list, description="Secrets that it may read. Empty: those of rbac.secretNames."
    )
    resources: Resources = Field(default_factory=lambda: asking("100m", "256Mi", "1Gi"), description="CPU and memory.")
    service_account: ServiceAccount = Field(default_factory=ServiceAccount, description="Its account.")


class SparkImage(Model):
    """The image of jobs on Spark."""

    repository: str = Field(default="bellwether-spark", min_length=1, description="Where it lies.")
    tag: str = Field(default="", description="Its tag. Empty: the chart's appVersion.")


class Spark(Model):
    """Load plans in Jobs: rights of the operator to make them, an account and a pod template for Spark."""

    enabled: bool = Field(default=False, description="Let the operator make Jobs for policies with spec.rebalance.")
    namespaces: list[Namespace] = Field(
        default_factory=list, description="Namespaces of those policies. Empty: the release's."
    )
    image: SparkImage = Field(default_factory=SparkImage, description="The image of the jobs.")
    service_account: ServiceAccount = Field(
        default_factory=ServiceAccount, description="The account of Spark's driver, which makes its executors."
    )
    executor_template: Loose = Field(
        default_factory=dict, description="What is put over the pod template of executors: a Pod, as Kubernetes has it."
    )


class Policy(Model):
    """A LeadershipPolicy that comes with the release."""

    name: Name = Field(description="Its name.")
    namespace: OptionalNamespace = Field(default="", description="Its namespace. Empty: the release's.")
    labels: Labels = Field(default_factory=dict, description="Further labels.")
    annotations: Labels = Field(default_factory=dict, description="Further annotations.")
    spec: Loose = Field(description="Its spec; docs/reference/crds.md explains each field.")
