"""Values of the chart that are not about a component: image, RBAC, CRDs, network policies, monitoring, admission."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from chartvalues.shared_values import (
    KubernetesObject,
    Labels,
    Model,
    Name,
    Namespace,
    OptionalName,
    OptionalNamespace,
    Port,
    Quantity,
    RegistryName,
    Resources,
    requests_and_limits,
)

Seconds = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")]
REGISTRY = "ghcr.io/bellwether-kafka"
"""Where releases are published; the one place that says so. Documents repeat it, and a test compares them."""

OptionalSeconds = Annotated[str, Field(pattern=r"^([0-9]+(ms|s|m))?$")]


class Image(Model):
    """The image of operator, probers and sampler."""

    registry: RegistryName = Field(
        default=REGISTRY,
        description="Registry of both images, with its path; set it to your mirror. global.imageRegistry replaces it.",
    )
    repository: str = Field(default="bellwether", min_length=1, description="Repository of the image.")
    tag: str = Field(default="", description="Tag of the image. Empty: the chart's appVersion.")
    digest: str = Field(
        default="",
        pattern=r"^(sha256:[0-9a-f]{64})?$",
        description="Digest of the image; takes precedence over the tag.",
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="Image pull policy: Always, IfNotPresent or Never."
    )


class PullSecret(Model):
    """A Secret with the credentials of a registry."""

    name: Name = Field(description="Name of the Secret.")


class Global(BaseModel):
    """Values that all charts of a parent chart share; unknown ones are ignored."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    image_registry: RegistryName = Field(default="", description="Registry of all images, with its path.")
    image_pull_secrets: list[PullSecret] = Field(
        default_factory=list, description="Further Secrets with credentials for the image registry."
    )


class TrustBundle(Model):
    """CA certificates that all pods trust in place of those of the image: for Prometheus, OAuth and object stores."""

    config_map_name: OptionalName = Field(
        default="", description="ConfigMap in the release's namespace, such as one of trust-manager. Empty: none."
    )
    key: str = Field(default="ca-bundle.crt", min_length=1, max_length=253, description="Key with PEM certificates.")


class Log(Model):
    """Logging of all components."""

    format: Literal["auto", "json", "console"] = Field(default="json", description="Log format: auto, json or console.")
    level: Literal["debug", "info", "warning"] = Field(default="info", description="Log level: debug, info or warning.")


class Crds(Model):
    """The custom resource definitions."""

    install: bool = Field(default=True, description="Install and upgrade the CRDs with the chart.")
    keep: bool = Field(default=True, description="Keep the CRDs on uninstall: deleting them deletes all their objects.")


class Rbac(Model):
    """Permissions."""

    create: bool = Field(default=True, description="Create roles and bindings.")
    secret_names: list[Name] = Field(
        default_factory=list,
        description="Secrets with Kafka credentials that policies name; operator, probers and sampler may read only"
        " these.",
    )
    any_secret: bool = Field(
        default=False,
        description="Permit the operator to read every Secret in the watched namespaces by name. Policies may then"
        " name only Secrets with the label bellwether.dev/purpose=kafka.",
    )
    aggregate_roles: bool = Field(
        default=True,
        description="Create the ClusterRoles <release>-view and <release>-edit for users, and add the first (reading"
        " LeadershipPolicies and BrokerHealths) to the cluster roles view, edit and admin.",
    )
    aggregate_editors: bool = Field(
        default=False,
        description="Also add <release>-edit (writing policies and overrides) to the cluster roles edit and admin, so"
        " that everyone who may edit a namespace may have leaders moved there. Otherwise bind <release>-edit to the"
        " users who may, with a RoleBinding in the namespace of the policy.",
    )


class Admission(Model):
    """The ValidatingAdmissionPolicies that restrict each prober to its own signals, and records to the operator."""

    enabled: bool = Field(default=True, description="Create the admission policies.")
    exempt_service_accounts: list[str] = Field(
        default_factory=list,
        description="Accounts that may write every BrokerHealth status, undo record and audit log, as"
        " system:serviceaccount:NAMESPACE:NAME.",
    )


class NetworkPolicies(Model):
    """NetworkPolicies of the components."""

    enabled: bool = Field(default=False, description="Create a NetworkPolicy for each component.")
    metrics_from: list[KubernetesObject] = Field(
        default_factory=list, description="Peers that may read metrics (NetworkPolicyPeer objects). Empty: all."
    )
    kafka_ports: list[Port] = Field(
        default=[9092, 9093, 9094], description="Ports of the brokers' listeners, at any address. Empty: all ports."
    )
    api_server_ports: list[Port] = Field(
        default=[443, 6443], min_length=1, description="Ports of the Kubernetes API, at any address."
    )
    extra_egress: list[KubernetesObject] = Field(
        default_factory=list, description="Additional egress rules, for example for an object store or Prometheus."
    )


class Monitor(Model):
    """A ServiceMonitor or PodMonitor of the Prometheus operator."""

    enabled: bool = Field(default=False, description="Create it; its CRD must be installed.")
    interval: Seconds = Field(default="15s", description="Time between scrapes.")
    scrape_timeout: OptionalSeconds = Field(default="", description="Timeout of a scrape. Empty: that of Prometheus.")
    labels: Labels = Field(default_factory=dict, description="Labels by which Prometheus selects it.")
    annotations: Labels = Field(default_factory=dict, description="Annotations.")
    relabelings: list[KubernetesObject] = Field(
        default_factory=list, description="Relabelings of targets (RelabelConfig objects)."
    )
    metric_relabelings: list[KubernetesObject] = Field(
        default_factory=list, description="Relabelings of samples (RelabelConfig objects)."
    )


class Rules(Model):
    """Alerts."""

    enabled: bool = Field(default=False, description="Create a PrometheusRule; its CRD must be installed.")
    labels: Labels = Field(default_factory=dict, description="Labels by which Prometheus selects it.")
    disabled: list[str] = Field(default_factory=list, description="Names of alerts to omit.")


class Dashboards(Model):
    """Dashboards."""

    enabled: bool = Field(default=False, description="Create a ConfigMap for each dashboard.")
    namespace: OptionalNamespace = Field(default="", description="Namespace of the ConfigMaps. Empty: the release's.")
    labels: Labels = Field(
        default={"grafana_dashboard": "1"}, description="Labels by which Grafana's sidecar selects them."
    )
    annotations: Labels = Field(default_factory=dict, description="Annotations, such as the Grafana folder.")


class KubeState(Model):
    """Metrics of LeadershipPolicies and BrokerHealths by kube-state-metrics."""

    enabled: bool = Field(
        default=False,
        description="Create a ConfigMap for its --custom-resource-state-config-file, and its permissions.",
    )
    service_account: str = Field(
        default="",
        pattern=r"^([a-z0-9-]+/[a-z0-9.-]+)?$",
        description="ServiceAccount of kube-state-metrics, as NAMESPACE/NAME. Empty: no role binding.",
    )


class Monitoring(Model):
    """Objects for the monitoring stack."""

    service_monitor: Monitor = Field(default_factory=Monitor, description="ServiceMonitor of the operator.")
    pod_monitor: Monitor = Field(default_factory=Monitor, description="PodMonitor of probers and sampler.")
    prometheus_rule: Rules = Field(default_factory=Rules, description="Alerts.")
    dashboards: Dashboards = Field(default_factory=Dashboards, description="Grafana dashboards.")
    kube_state_metrics: KubeState = Field(default_factory=KubeState, description="Configuration of kube-state-metrics.")


class PodSecurity(Model):
    """Security contexts for the Pod Security level restricted."""

    pod: KubernetesObject = Field(
        default={
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        description="Security context of pods. On OpenShift set runAsUser, runAsGroup and fsGroup to null.",
    )
    container: KubernetesObject = Field(
        default={
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        description="Security context of containers.",
    )
    tmp_size: Quantity = Field(default="64Mi", description="Size limit of /tmp, the only writable directory.")


class Strimzi(Model):
    """Kafka clusters that are managed by Strimzi."""

    enabled: bool = Field(
        default=False,
        description="Grant the permissions for policies with spec.kafka.strimzi.",
    )
    user_names: list[Name] = Field(
        default=["bellwether"],
        description="KafkaUsers of policies; operator, probers and sampler may read their Secrets. CAs need no Secret.",
    )
    namespaces: list[Namespace] = Field(
        default_factory=list,
        description="Additional namespaces with Strimzi clusters; those of the policies are included.",
    )


class Maintenance(Model):
    """Detection of unannounced broker restarts."""

    watch_pods: bool = Field(
        default=False,
        description="Grant the permission to list pods, for policies with spec.maintenance.pods.",
    )


class Uninstall(Model):
    """Restoration of replica orders before the release is deleted."""

    enabled: bool = Field(
        default=True,
        description="Run `bellwether uninstall` before deletion, so that no replica order stays displaced.",
    )
    mode: Literal["restore", "export"] = Field(
        default="restore",
        description="restore: restore the orders, and export those of sick brokers. export: export all orders.",
    )
    timeout_seconds: int = Field(
        default=120, ge=0, le=3600, description="Seconds that restoring may take; the remaining orders are exported."
    )
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("50m", "128Mi", "512Mi"), description="CPU and memory."
    )


class Tests(Model):
    """``helm test``."""

    enabled: bool = Field(default=True, description="Create the pod for `helm test`.")
    wait_seconds: int = Field(default=60, ge=0, le=600, description="Seconds to wait until the operator is ready.")
    resources: Resources = Field(
        default_factory=lambda: requests_and_limits("50m", "128Mi", "512Mi"), description="CPU and memory."
    )
