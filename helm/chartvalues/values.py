"""All values of the chart, in the order of ``values.yaml``."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from chartvalues.running import Alertmanager, Operator, Policy, Prober, ProberDefaults, Sampler, Sidecars, Spark
from chartvalues.shapes import Labels, Loose, Model, Namespace, OptionalName
from chartvalues.surroundings import (
    Admission,
    Crds,
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
    Uninstall,
)


class Values(Model):
    """Values of the chart bellwether."""

    model_config = ConfigDict(json_schema_extra={"$schema": "http://json-schema.org/draft-07/schema#"})

    name_override: OptionalName = Field(default="", description="Stands in for the chart's name in names.")
    fullname_override: OptionalName = Field(default="", description="Stands in for release and chart in names.")
    common_labels: Labels = Field(default_factory=dict, description="Labels of every object.")
    common_annotations: Labels = Field(default_factory=dict, description="Annotations of every object.")
    image: Image = Field(default_factory=Image, description="The image of operator, probers and sampler.")
    image_pull_secrets: list[PullSecret] = Field(default_factory=list, description="Credentials of the registry.")
    watch_namespaces: list[Namespace] = Field(
        default_factory=list,
        description="Namespaces whose policies are worked on, each with a Role. Empty: all, with a ClusterRole.",
    )
    log: Log = Field(default_factory=Log, description="How all components write their logs.")
    crds: Crds = Field(default_factory=Crds, description="The custom resource definitions.")
    rbac: Rbac = Field(default_factory=Rbac, description="Rights.")
    admission: Admission = Field(
        default_factory=Admission, description="What binds each prober's account to its own entries."
    )
    pod_security: PodSecurity = Field(default_factory=PodSecurity, description="How pods are confined.")
    operator: Operator = Field(default_factory=Operator, description="The operator.")
    prober: ProberDefaults = Field(default_factory=ProberDefaults, description="What holds for every prober.")
    probers: list[Prober] = Field(default_factory=list, description="Probers, one Deployment each.")
    alertmanager: Alertmanager = Field(default_factory=Alertmanager, description="The webhook for Alertmanager.")
    sidecars: Sidecars = Field(default_factory=Sidecars, description="Sidecars of brokers.")
    sampler: Sampler = Field(default_factory=Sampler, description="The sampler of loads.")
    spark: Spark = Field(default_factory=Spark, description="Load plans on Spark.")
    policies: list[Policy] = Field(
        default_factory=list,
        description="LeadershipPolicies. They stay on uninstall, and come with the second `helm upgrade` where the"
        " definitions were not there before the first.",
    )
    network_policy: NetworkPolicies = Field(default_factory=NetworkPolicies, description="Which connections pods have.")
    strimzi: Strimzi = Field(default_factory=Strimzi, description="Clusters that policies name by Strimzi's objects.")
    maintenance: Maintenance = Field(
        default_factory=Maintenance, description="Restarts of brokers that policies have watched."
    )
    uninstall: Uninstall = Field(default_factory=Uninstall, description="What happens before the release is deleted.")
    monitoring: Monitoring = Field(default_factory=Monitoring, description="What a monitoring stack takes.")
    tests: Tests = Field(default_factory=Tests, description="helm test.")
    extra_objects: list[Loose] = Field(default_factory=list, description="Further objects of the release; templates.")
    global_: dict[str, Any] = Field(
        default_factory=dict, alias="global", description="What Helm hands to the parts of a larger chart; not used."
    )
