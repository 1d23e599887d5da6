"""The values of what stands around the operator: rights, definitions, networks, monitoring, admission."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chartvalues.shapes import (
    Labels,
    Loose,
    Model,
    Name,
    Namespace,
    OptionalNamespace,
    Port,
    Quantity,
    Resources,
    asking,
)

Seconds = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")]


class Image(Model):
    """The image of operator, probers and sampler."""

    repository: str = Field(default="bellwether", min_length=1, description="Where it lies.")
    tag: str = Field(default="", description="Its tag. Empty: the chart's appVersion.")
    digest: str = Field(
        default="", pattern=r"^(sha256:[0-9a-f]{64})?$", description="Its digest, which counts more than the tag."
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="Always, IfNotPresent or Never."
    )


class PullSecret(Model):
    """A Secret with the credentials of a registry."""

    name: Name = Field(description="Name of the Secret.")


class Log(Model):
    """How all components write their logs."""

    format: Literal["auto", "json", "console"] = Field(default="json", description="auto, json or console.")
    level: Literal["debug", "info", "warning"] = Field(default="info", description="debug, info or warning.")


class Crds(Model):
    """The custom resource definitions."""

    install: bool = Field(default=True, description="Install and upgrade them with the chart.")
    keep: bool = Field(
        default=True, description="Leave them where they are on uninstall: with them all their objects would go."
    )


class Rbac(Model):
    """Rights."""

    create: bool = Field(default=True, description="Make roles and bindings.")
    secret_names: list[Name] = Field(
        default_factory=list,
        description="Secrets with credentials for Kafka that policies refer to: operator, probers and sampler may read"
        " these, and no others.",
    )
    any_secret: bool = Field(
        default=False, description="Let the operator read any Secret of the watched namespaces, by its name."
    )
    aggregate_roles: bool = Field(
        default=True, description="Add policies and BrokerHealths to the cluster's roles view, edit and admin."
    )


class Admission(Model):
    """The ValidatingAdmissionPolicy that binds each prober's account to its own entries, as RBAC cannot."""

    enabled: bool = Field(default=True, description="Make it.")
    exempt_service_accounts: list[str] = Field(
        default_factory=list,
        description="Accounts that may write any status of a BrokerHealth, as system:serviceaccount:NAMESPACE:NAME.",
    )


class NetworkPolicies(Model):
    """Which connections pods may have."""

    enabled: bool = Field(default=False, description="Make a NetworkPolicy for each component.")
    metrics_from: list[Loose] = Field(
        default_factory=list, description="Peers that may read metrics, as Kubernetes has them. Empty: everybody."
    )
    webhook_from: list[Loose] = Field(default_factory=list, description="Peers that may send alerts. Empty: everybody.")
    kafka_ports: list[Port] = Field(
        default=[9092, 9093, 9094], description="Ports of the brokers' listeners, at any address. Empty: all ports."
    )
    api_server_ports: list[Port] = Field(
        default=[443, 6443], min_length=1, description="Ports of the Kubernetes API, at any address."
    )
    extra_egress: list[Loose] = Field(
        default_factory=list, description="Further rules for outgoing connections: an object store, a Prometheus."
    )


class Monitor(Model):
    """What Prometheus' operator reads to find what is to be scraped."""

    enabled: bool = Field(default=False, description="Make it; its definition has to be installed.")
    interval: Seconds = Field(default="15s", description="Time between scrapes.")
    labels: Labels = Field(default_factory=dict, description="Labels that Prometheus selects it by.")


class Rules(Model):
    """Alerts."""

    enabled: bool = Field(default=False, description="Make a PrometheusRule; its definition has to be installed.")
    labels: Labels = Field(default_factory=dict, description="Labels that Prometheus selects it by.")
    runbook_url: str = Field(
        default="https://bellwether.dev/docs/alerts",
        pattern=r"^https?://\S+[^/\s]$",
        description="Where the pages lie that alerts lead to, without the last slash.",
    )
    disabled: list[str] = Field(default_factory=list, description="Names of alerts that are left out.")


class Dashboards(Model):
    """Dashboards."""

    enabled: bool = Field(default=False, description="Make a ConfigMap for each dashboard.")
    namespace: OptionalNamespace = Field(default="", description="Their namespace. Empty: the release's.")
    labels: Labels = Field(default={"grafana_dashboard": "1"}, description="Labels that Grafana's sidecar selects by.")
    annotations: Labels = Field(default_factory=dict, description="Annotations, such as the folder.")


class KubeState(Model):
    """What kube-state-metrics shows of policies and BrokerHealths."""

    enabled: bool = Field(
        default=False, description="Make a ConfigMap for its --custom-resource-state-config-file, and its rights."
    )
    service_account: str = Field(
        default="",
        pattern=r"^([a-z0-9-]+/[a-z0-9.-]+)?$",
        description="Account of kube-state-metrics, as NAMESPACE/NAME, that is to read them. Empty: nobody is bound.",
    )


class Monitoring(Model):
    """What a monitoring stack takes."""

    service_monitor: Monitor = Field(default_factory=Monitor, description="ServiceMonitor of the operator.")
    pod_monitor: Monitor = Field(default_factory=Monitor, description="PodMonitor of probers, webhook and sampler.")
    prometheus_rule: Rules = Field(default_factory=Rules, description="Alerts.")
    dashboards: Dashboards = Field(default_factory=Dashboards, description="Grafana's dashboards.")
    kube_state_metrics: KubeState = Field(default_factory=KubeState, description="For kube-state-metrics.")


class PodSecurity(Model):
    """How pods and containers are confined: Pod Security's level restricted."""

    pod: Loose = Field(
        default={
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        description="Of pods. OpenShift gives users itself: set runAsUser, runAsGroup and fsGroup to null there.",
    )
    container: Loose = Field(
        default={
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        description="Of containers.",
    )
    tmp_size: Quantity = Field(default="64Mi", description="Size of /tmp, the one place that may be written to.")


class Strimzi(Model):
    """Kafka clusters that policies name by Strimzi's own objects."""

    enabled: bool = Field(
        default=False, description="Grant what policies with spec.kafka.strimzi need. Their Secrets are in rbac."
    )
    namespaces: list[Namespace] = Field(
        default_factory=list, description="Namespaces of Strimzi's clusters, besides those of the policies."
    )


class Maintenance(Model):
    """Restarts of brokers that nobody announces."""

    watch_pods: bool = Field(
        default=False,
        description="Grant what policies with spec.maintenance.pods need: to list pods, in their namespaces.",
    )


class Uninstall(Model):
    """What happens before the release is deleted."""

    enabled: bool = Field(
        default=True, description="Run `bellwether uninstall` first, so that no order is left displaced and forgotten."
    )
    mode: Literal["restore", "export"] = Field(
        default="restore",
        description="restore puts orders back, and exports those of brokers that are still sick; export leaves all.",
    )
    timeout_seconds: int = Field(
        default=120, ge=0, le=3600, description="How long restoring may take; what is left then is exported."
    )
    resources: Resources = Field(default_factory=lambda: asking("50m", "128Mi", "512Mi"), description="CPU and memory.")


class Tests(Model):
    """``helm test``."""

    enabled: bool = Field(default=True, description="Bring the pod that `helm test` starts.")
    wait_seconds: int = Field(default=60, ge=0, le=600, description="How long the operator may take to be ready.")
    resources: Resources = Field(default_factory=lambda: asking("50m", "128Mi", "512Mi"), description="CPU and memory.")
