"""All values of the chart, in the order of ``values.yaml``."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from bellwether import documentation
from bellwether.api.config.field_types import ConfigName
from bellwether.api.config.workload_identity import WorkloadIdentity
from bellwether.destinations import ENTRY
from chartvalues.component_values import (
    Operator,
    Policy,
    Prober,
    ProberDefaults,
    Sampler,
    Sidecars,
    Spark,
)
from chartvalues.load_values import Load
from chartvalues.platform_values import (
    Admission,
    Crds,
    Global,
    Image,
    Log,
    Maintenance,
    Monitoring,
    NetworkPolicies,
    PodSecurity,
    PullSecret,
    Rbac,
    Strimzi,
    Tests,
    TrustBundle,
    Uninstall,
)
from chartvalues.shared_values import KubernetesObject, Labels, Model, Namespace, OptionalName


class Values(Model):
    """Values of the chart bellwether."""

    model_config = ConfigDict(json_schema_extra={"$schema": "http://json-schema.org/draft-07/schema#"})

    enabled: bool = Field(
        default=True,
        description="For the condition of an umbrella chart (condition: bellwether.enabled) that leaves it out."
        " Without such a condition false is refused.",
    )
    name_override: OptionalName = Field(default="", description="Replaces the chart name in object names.")
    fullname_override: OptionalName = Field(default="", description="Replaces release and chart name in object names.")
    common_labels: Labels = Field(default_factory=dict, description="Labels for every object.")
    common_annotations: Labels = Field(default_factory=dict, description="Annotations for every object.")
    image: Image = Field(default_factory=Image, description="Image of the operator, the probers and the sampler.")
    image_pull_secrets: list[PullSecret] = Field(
        default_factory=list, description="Secrets with credentials for the image registry."
    )
    trust_bundle: TrustBundle = Field(default_factory=TrustBundle, description="CA certificates that all pods trust.")
    watch_namespaces: list[Namespace] = Field(
        default_factory=list,
        description="Namespaces whose policies the release manages, with a Role in each. Empty: that of the release.",
    )
    watch_all_namespaces: bool = Field(
        default=False,
        description="Manage the policies of all namespaces, with rights in all of them by ClusterRoles.",
    )
    metadata_limit_mebibytes: int = Field(
        default=24,
        ge=8,
        le=192,
        description="Largest metadata response that the operator, the Replication probers and the sampler read from a"
        " Kafka cluster, in MiB: 24 is enough for 200,000 partitions, 128 for 2,000,000. Raise the operator's memory"
        " limit with it.",
    )
    docs_url: str = Field(
        default=documentation.HOME,
        pattern=r"^https?://\S+$",
        description="Site of the documentation: alerts, dashboards, messages and these notes link to pages of it.",
    )
    log: Log = Field(default_factory=Log, description="Logging of all components.")
    crds: Crds = Field(default_factory=Crds, description="The custom resource definitions.")
    rbac: Rbac = Field(default_factory=Rbac, description="Permissions.")
    admission: Admission = Field(
        default_factory=Admission, description="Admission policies that restrict each prober to its own signals."
    )
    workload_identities: dict[ConfigName, WorkloadIdentity] = Field(
        default_factory=dict,
        description="Identities of Bellwether's own pods, by the names that policies use (sasl.workloadIdentity,"
        f" prometheus.workloadIdentity). See {documentation.page('security/workload-identities.md')}.",
    )
    allowed_destinations: list[Annotated[str, Field(pattern=ENTRY)]] = Field(
        default_factory=list,
        description="Where operator, probers and sampler may connect by what policies and SignalSources name or Kafka"
        " brokers advertise: networks, addresses, host names, or '*.' and a domain, each with :port or :from-to if not"
        " all ports. Empty: anywhere, but for the pod itself, link-local and metadata addresses and the Kubernetes API,"
        f" which need an entry for just that address or network. See {documentation.page('security/destinations.md')}.",
    )
    pod_security: PodSecurity = Field(default_factory=PodSecurity, description="Security contexts of the pods.")
    operator: Operator = Field(default_factory=Operator, description="The operator.")
    prober: ProberDefaults = Field(default_factory=ProberDefaults, description="Defaults for all probers.")
    probers: list[Prober] = Field(default_factory=list, description="Probers; one Deployment for each.")
    sidecars: Sidecars = Field(default_factory=Sidecars, description="Sidecars in the brokers' pods.")
    load: Load = Field(
        default_factory=Load,
        description="Load rebalancing: what policies may refer to by name. See"
        f" {documentation.page('load/configuration.md')}.",
    )
    sampler: Sampler = Field(default_factory=Sampler, description="Sampler of partition loads.")
    spark: Spark = Field(default_factory=Spark, description="Jobs that compute loads, on Spark, and plans.")
    policies: list[Policy] = Field(
        default_factory=list,
        description="LeadershipPolicies. They are kept on uninstall. If the CRDs are new, they are created by the next"
        " `helm upgrade`.",
    )
    signal_sources: list[Policy] = Field(
        default_factory=list,
        description="SignalSources that policies name, with prometheus or plugin. They are kept, as policies are.",
    )
    rebalances: list[Policy] = Field(
        default_factory=list,
        description="LeaderRebalances, whose spec names a policy. They are kept, as policies are.",
    )
    network_policy: NetworkPolicies = Field(
        default_factory=NetworkPolicies, description="Network policies of the pods."
    )
    strimzi: Strimzi = Field(default_factory=Strimzi, description="Kafka clusters that are managed by Strimzi.")
    maintenance: Maintenance = Field(default_factory=Maintenance, description="Detection of broker restarts.")
    uninstall: Uninstall = Field(
        default_factory=Uninstall, description="Restoration of replica orders before the release is deleted."
    )
    monitoring: Monitoring = Field(default_factory=Monitoring, description="Objects for the monitoring stack.")
    tests: Tests = Field(default_factory=Tests, description="The test run by `helm test`.")
    extra_objects: list[KubernetesObject] = Field(
        default_factory=list, description="Additional objects of the release; rendered as templates."
    )
    global_: Global = Field(default_factory=Global, alias="global", description="Values of a parent chart.")
