"""What the chart renders to: names, labels, confinement, arguments that the product takes, parts that fit together."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from bellwether import documentation
from bellwether.api.config.workload_identity import WorkloadIdentities
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS
from bellwether.cli.main import main
from realparts.helm import Helm, of, pods
from testkit.loads.load_configs import of_chart

pytestmark = pytest.mark.chart

Object = dict[str, Any]
CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


def test_every_object_says_whose_it_is_and_no_two_share_a_name(helm: Helm, chart: Path, good: Path):
    objects = helm.template(chart, good)
    names = Counter((o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects)
    assert [name for name, times in names.items() if times > 1] == []
    for found in objects:
        metadata = found["metadata"]
        assert len(metadata["name"]) <= 63, metadata["name"]
        if metadata["name"] == "herd-more":
            continue  # an object of another owner
        assert ("namespace" in metadata) == (found["kind"] not in CLUSTER_WIDE), found["kind"]
        labels = metadata["labels"]
        assert labels["app.kubernetes.io/part-of"] == "bellwether"
        assert labels["app.kubernetes.io/instance"] == "bellwether"
        assert labels["helm.sh/chart"].startswith("bellwether-")
        assert all(len(str(value)) <= 63 for value in labels.values())


def test_labels_and_annotations_for_all_reach_every_object_and_every_pod(helm: Helm, chart: Path):
    given = {
        "commonLabels": {"example.com/team": "platform"},
        "commonAnnotations": {"example.com/contact": "a@example.com"},
        "probers": [{"kind": "Replication"}],
        "networkPolicy": {"enabled": True},
    }
    objects = helm.template(chart, given)
    templates = [o["spec"]["template"] for o in objects if o["kind"] in ("Deployment", "Job")]
    assert templates
    for metadata in [o["metadata"] for o in (*objects, *templates)]:
        assert metadata["labels"]["example.com/team"] == "platform"
        assert metadata["annotations"]["example.com/contact"] == "a@example.com"


def test_every_pod_is_confined_and_has_account_of_release(helm: Helm, chart: Path, good: Path):
    objects = helm.template(chart, good)
    accounts = {o["metadata"]["name"] for o in of(objects, "ServiceAccount")}
    found = list(pods(objects))
    assert found
    for name, spec in found:
        assert spec["serviceAccountName"] in accounts, name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
        for container in spec["containers"]:
            confined = container["securityContext"]
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["allowPrivilegeEscalation"] is False
            assert confined["capabilities"] == {"drop": ["ALL"]}
            assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
            assert container["resources"]["requests"], name


def test_no_pod_is_restarted_for_what_strangers_do_on_its_webhook(helm: Helm, chart: Path, good: Path):
    probed = {
        (name, container[probe]["httpGet"]["port"])
        for name, spec in pods(helm.template(chart, good))
        for container in spec["containers"]
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        if probe in container
    }
    assert {port for _, port in probed} <= {"metrics", "health"}


def test_no_account_gives_its_token_to_pods_that_do_not_ask(helm: Helm, chart: Path, good: Path):
    for account in of(helm.template(chart, good), "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_the_product_takes_every_argument_that_the_chart_gives(helm: Helm, chart: Path, good: Path):
    for name, spec in pods(helm.template(chart, good)):
        for container in spec["containers"]:
            verb = taken(container["args"])
            assert verb in {"operator", "check", "uninstall", "sample", "probe", "sidecar-webhook"}, name


def test_an_argument_that_the_product_does_not_know_is_found():
    with pytest.raises(click.NoSuchOption):
        taken(["operator", "--lease-lasts=10"])


def taken(arguments: Sequence[str]) -> str:
    """Let the command line parse arguments without running anything; the verb. Raises what a person would see."""
    command: click.Command = main
    context = main.make_context("bellwether", list(arguments))
    rest: list[str] = [*context._protected_args, *context.args]
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None, name
        command, context = found, found.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
    return str(arguments[0])


def test_services_and_deployments_select_exactly_their_own_pods(helm: Helm, chart: Path, good: Path):
    objects = helm.template(chart, good)
    deployments = of(objects, "Deployment")
    labels = {o["metadata"]["name"]: o["spec"]["template"]["metadata"]["labels"] for o in deployments}
    for one in deployments:
        wanted = one["spec"]["selector"]["matchLabels"]
        matching = [name for name, has in labels.items() if wanted.items() <= has.items()]
        assert matching == [one["metadata"]["name"]]
    for service in of(objects, "Service"):
        (chosen,) = [
            o for o in deployments if service["spec"]["selector"].items() <= labels[o["metadata"]["name"]].items()
        ]
        named = {p["name"] for c in chosen["spec"]["template"]["spec"]["containers"] for p in c.get("ports", [])}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_every_binding_leads_to_role_and_account_of_release(helm: Helm, chart: Path, good: Path):
    values = yaml.safe_load(good.read_text())
    objects = helm.template(chart, good)
    roles = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects}
    accounts = {o["metadata"]["name"] for o in of(objects, "ServiceAccount")}
    foreign = {a["name"] for a in values.get("sidecars", {}).get("accounts", [])} | {"kube-state-metrics"}
    for binding in [o for o in objects if o["kind"].endswith("RoleBinding")]:
        reference = binding["roleRef"]
        assert (reference["kind"], binding["metadata"].get("namespace"), reference["name"]) in roles
        assert {subject["name"] for subject in binding["subjects"]} <= accounts | foreign


def test_rights_are_in_the_release_namespace_or_those_named(helm: Helm, chart: Path):
    for watched, expected in ([], {"bellwether"}), (["a", "b"], {"a", "b"}):
        objects = helm.template(chart, {"watchNamespaces": watched, "spark": {"enabled": True}})
        assert not any("*" in str(o["rules"]) for o in objects if o["kind"] in ("Role", "ClusterRole"))
        assert of(objects, "ClusterRoleBinding") == []
        assert {o["metadata"]["namespace"] for o in of(objects, "Role", "-operator")} == expected
        bindings = [o for o in of(objects, "ValidatingAdmissionPolicyBinding") if "matchResources" in o["spec"]]
        selected = [o["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0] for o in bindings]
        assert bindings
        assert all(set(one["values"]) <= {*expected, "bellwether"} for one in selected)


def test_all_namespaces_are_watched_only_by_an_explicit_value(helm: Helm, chart: Path):
    objects = helm.template(chart, {"watchAllNamespaces": True})
    assert [o["metadata"]["name"] for o in of(objects, "ClusterRoleBinding")] == ["bellwether-operator-bellwether"]


def test_two_releases_of_one_name_share_definitions_only(helm: Helm, chart: Path):
    found = [
        {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects}
        for objects in (helm.template(chart, {"probers": [{"kind": "Replication"}]}, namespace=one) for one in "ab")
    ]
    assert {kind for kind, _, _ in set.intersection(*found)} == {"CustomResourceDefinition"}


def test_writing_policies_is_in_no_cluster_role_unless_the_administrator_asks_for_it(helm: Helm, chart: Path):
    def joined(ending: str, **rbac: bool) -> set[str]:
        (role,) = of(helm.template(chart, {"rbac": rbac}), "ClusterRole", ending)
        return {label.rpartition("-")[2] for label in role["metadata"]["labels"] if "aggregate-to" in label}

    assert joined("-view") == {"view", "edit", "admin"}
    assert joined("-edit") == set()
    assert joined("-edit", aggregateEditors=True) == {"edit", "admin"}
    assert joined("-rebalance", aggregateEditors=True) == set()


def test_definitions_are_the_products_own_and_stay(helm: Helm, chart: Path):
    objects = {o["metadata"]["name"]: o for o in of(helm.template(chart), "CustomResourceDefinition")}
    assert set(objects) == {f"{kind.plural}.bellwether.dev" for kind in KINDS}
    for kind in KINDS:
        found = objects[f"{kind.plural}.bellwether.dev"]
        # A test of the tree compares that file with the models.
        assert found["spec"] == yaml.safe_load((chart / "files" / "crds" / f"{kind.plural}.yaml").read_text())["spec"]
        assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    going = of(helm.template(chart, {"crds": {"keep": False}}), "CustomResourceDefinition")
    assert not any("annotations" in o["metadata"] for o in going)
    assert of(helm.template(chart, {"crds": {"install": False}}), "CustomResourceDefinition") == []


def test_policies_come_only_where_their_definition_is(helm: Helm, chart: Path):
    given = {"policies": [{"name": "orders", "spec": {"mode": "Observe"}}]}
    served = "--api-versions=bellwether.dev/v1alpha1/LeadershipPolicy"
    assert of(helm.template(chart, given), "LeadershipPolicy") == []
    for objects in (
        helm.template(chart, given, served),
        helm.template(chart, {**given, "crds": {"install": False}}),
    ):
        (policy,) = of(objects, "LeadershipPolicy")
        assert policy["spec"] == {"mode": "Observe"}
        assert policy["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_replicas_are_kept_apart_and_one_may_be_evicted(helm: Helm, chart: Path):
    objects = helm.template(chart)
    (operator,) = of(objects, "Deployment", "-operator")
    assert operator["spec"]["replicas"] == 2
    spread = operator["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    (budget,) = of(objects, "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert of(helm.template(chart, {"operator": {"replicas": 1}}), "PodDisruptionBudget") == []


def test_a_prober_keeps_its_zone_next_to_any_other_affinity(helm: Helm, chart: Path):
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": []}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    prober = {"kind": "Reachability", "vantage": "z1", "zones": ["z1", "z2"], "affinity": affinity}
    (found,) = of(helm.template(chart, {"probers": [prober]}), "Deployment", "-prober-reachability-z1")
    node = found["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1", "z2"]}
    wanted = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one["matchExpressions"][-1] for one in wanted] == [zone, zone]
    assert wanted[0]["matchExpressions"][0] == {"key": "a", "operator": "Exists"}
    assert "matchFields" in wanted[1]


def test_each_prober_has_an_account_of_its_own_and_reads_only_its_secrets(helm: Helm, chart: Path):
    given = {
        "watchNamespaces": ["kafka"],
        "rbac": {"secretNames": ["shared"]},
        "probers": [
            {"kind": "Reachability", "vantage": "z1"},
            {"kind": "Replication", "secretNames": ["own"]},
        ],
    }
    objects = helm.template(chart, given)
    reads = {
        role["metadata"]["name"]: [
            name for rule in role["rules"] if rule["resources"] == ["secrets"] for name in rule["resourceNames"]
        ]
        for role in of(objects, "Role")
        if "-prober-" in role["metadata"]["name"]
    }
    assert reads == {"bellwether-prober-reachability-z1": ["shared"], "bellwether-prober-replication": ["own"]}


def test_alerts_keep_prometheus_own_templates_and_lead_to_pages_of_ones_own(helm: Helm, chart: Path):
    rules = {"enabled": True, "disabled": ["BellwetherBrokerSick"]}
    given = {"docsUrl": "https://example.com/docs", "monitoring": {"prometheusRule": rules}}
    rendered = of(helm.template(chart, given), "PrometheusRule")
    alerts = [r for o in rendered for g in o["spec"]["groups"] for r in g["rules"] if "alert" in r]
    source = [
        r
        for path in sorted((chart / "files" / "alerts").glob("*.yaml"))
        for g in yaml.safe_load(path.read_text())["groups"]
        for r in g["rules"]
        if "alert" in r
    ]
    assert {a["alert"] for a in alerts} == {a["alert"] for a in source} - {"BellwetherBrokerSick"}
    assert {a["expr"] for a in alerts} <= {a["expr"] for a in source}
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"https://example.com/docs/alerts/{alert['alert']}/"
    assert any("{{ $labels" in a["annotations"]["summary"] for a in alerts)


def test_dashboards_and_states_are_the_files_as_they_are(helm: Helm, chart: Path):
    given = {
        "monitoring": {"dashboards": {"enabled": True, "namespace": "grafana"}, "kubeStateMetrics": {"enabled": True}}
    }
    held = {
        key: text for o in of(helm.template(chart, given), "ConfigMap") for key, text in (o.get("data") or {}).items()
    }
    for folder in ("dashboards", "kube-state-metrics"):
        for path in (chart / "files" / folder).glob("*.[jy]*"):
            assert held[path.name].strip() == path.read_text().strip()
    boards = [o for o in of(helm.template(chart, given), "ConfigMap") if "-dashboard-" in o["metadata"]["name"]]
    assert {o["metadata"]["namespace"] for o in boards} <= {"grafana"}
    assert {o["metadata"]["labels"]["grafana_dashboard"] for o in boards} <= {"1"}


def test_dashboards_link_to_the_runbooks_of_the_installation(helm: Helm, chart: Path):
    mirror = "https://example.com/bellwether"
    given = {"docsUrl": mirror, "monitoring": {"dashboards": {"enabled": True}}}
    boards = [o["data"] for o in of(helm.template(chart, given), "ConfigMap") if "-dashboard-" in o["metadata"]["name"]]
    text = "".join(text for data in boards for text in data.values())
    assert documentation.HOME not in text
    assert f"{mirror}/reasons/" in text
    assert f"{mirror}/alerts/${{__value.raw}}/" in text


LOAD: Object = {"stores": {"default": {"namespaces": ["kafka"], "uri": "s3://loads"}}}


def test_without_a_store_nothing_is_configured_for_rebalancing(helm: Helm, chart: Path):
    objects = helm.template(chart, {"load": {"stores": {}}})
    assert of(objects, "ConfigMap", "-load") == []
    assert "load-config" not in str(of(objects, "Deployment"))


def test_operator_and_sampler_read_what_policies_may_name(helm: Helm, chart: Path):
    objects = helm.template(chart, {"load": LOAD, "sampler": {"enabled": True}})
    config = of_chart(objects)
    assert config.stores["default"].uri == "s3://loads"
    assert str(config.profiles["default"].image).startswith("ghcr.io/bellwether-kafka/bellwether-spark:")
    for ending in ("-operator", "-sampler"):
        (deployment,) = of(objects, "Deployment", ending)
        spec = deployment["spec"]["template"]["spec"]
        assert "--load-config=/etc/bellwether/load.yaml" in spec["containers"][0]["args"]
        (mount,) = [m for m in spec["containers"][0]["volumeMounts"] if m["name"] == "load-config"]
        (volume,) = [v for v in spec["volumes"] if v["name"] == "load-config"]
        assert (mount["mountPath"], volume["configMap"]["name"]) == ("/etc/bellwether", "bellwether-load")


def test_a_changed_store_restarts_the_operator(helm: Helm, chart: Path):
    def annotations(load: Object) -> Object:
        (found,) = of(helm.template(chart, {"load": load}), "Deployment", "-operator")
        given: Object = found["spec"]["template"]["metadata"]["annotations"]
        return given

    other = {"stores": {"default": {"namespaces": ["kafka"], "uri": "s3://others"}}}
    assert annotations(LOAD) == annotations(LOAD)
    assert annotations(LOAD) != annotations(other)


def test_profile_with_executors_gets_charts_account_and_confined_template(helm: Helm, chart: Path):
    template = {"spec": {"nodeSelector": {"pool": "spark"}}}
    profile = {"namespaces": ["*"], "type": "SparkOnKubernetes", "image": "mine:1", "executors": {"instances": 5}}
    given = {"large": {**profile, "executors": {"instances": 5, "podTemplate": template}}}
    found = of_chart(helm.template(chart, {"spark": {"enabled": True}, "load": {**LOAD, "profiles": given}}))
    large = found.profiles["large"]
    assert (large.image, large.service_account_name, large.executors.instances) == ("mine:1", "bellwether-spark", 5)
    assert large.executors.pod_template is not None
    spec = large.executors.pod_template["spec"]
    assert spec["nodeSelector"] == {"pool": "spark"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_what_chart_configures_under_good_values_is_valid_for_operator(helm: Helm, chart: Path):
    assert set(of_chart(helm.template(chart, chart.parents[1] / "tests/integration/chart/good/everything.yaml")).stores)


def test_every_pod_that_connects_can_read_the_workload_identities(helm: Helm, chart: Path):
    role = {"namespaces": ["kafka"], "hosts": ["*.kafka.eu-central-1.amazonaws.com"]}
    role["awsMskIam"] = {"region": "eu-central-1"}
    prober = {"kind": "Reachability", "vantage": "a"}
    values: Object = {"load": LOAD, "sampler": {"enabled": True}, "probers": [prober]}
    assert "workload-identities" not in str(helm.template(chart, values))
    objects = helm.template(chart, {**values, "workloadIdentities": {"msk": role}})
    (config,) = of(objects, "ConfigMap", "-workload-identities")
    (name, text), *_ = config["data"].items()
    assert WorkloadIdentities.model_validate(yaml.safe_load(text)).named("msk", "kafka", "sasl").aws_msk_iam is not None
    deployments = of(objects, "Deployment")
    assert len(deployments) == 3
    for deployment in deployments:
        spec = deployment["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        (mount,) = [one for one in container["volumeMounts"] if one["name"] == "workload-identities"]
        (volume,) = [one for one in spec["volumes"] if one["name"] == "workload-identities"]
        assert volume["configMap"] == {"name": config["metadata"]["name"], "optional": True}
        assert {"name": "BELLWETHER_WORKLOAD_IDENTITIES", "value": f"{mount['mountPath']}/{name}"} in container["env"]


@pytest.mark.parametrize("enabled", [True, False])
def test_an_umbrella_chart_may_leave_it_out_by_a_condition(helm: Helm, chart: Path, tmp_path: Path, enabled: bool):
    shutil.copytree(chart, tmp_path / "charts" / "bellwether")
    needed = {"name": "bellwether", "version": ">=0.0.0-0", "condition": "bellwether.enabled"}
    head = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [needed]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(head))
    values = {"bellwether": {"enabled": enabled}, "global": {"team": "platform"}}
    assert bool(of(helm.template(tmp_path, values), "Deployment")) == enabled


def test_every_component_reaches_dns_also_of_openshift_whose_pods_listen_on_5353(helm: Helm, chart: Path):
    policies = of(helm.template(chart, {"networkPolicy": {"enabled": True}}), "NetworkPolicy")
    dns = {"kubernetes.io/metadata.name": "openshift-dns"}
    for policy in policies:
        (rule,) = (r for r in policy["spec"]["egress"] if {"port": 5353, "protocol": "UDP"} in r.get("ports", ()))
        assert rule["to"] == [{"namespaceSelector": {"matchLabels": dns}}]
    assert {p["metadata"]["labels"]["app.kubernetes.io/component"] for p in policies} >= {"operator", "hook"}
