"""Which policies a workload of the chart serves, and what platform teams set: images, spreading, accounts, monitors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chartvalues.platform_values import REGISTRY
from realparts.helm import Helm, of, pods

pytestmark = pytest.mark.chart

Object = dict[str, Any]


def arguments(deployment: Object) -> list[str]:
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


def test_a_prober_serves_every_policy_of_the_watched_namespaces_or_of_its_own(helm: Helm, chart: Path):
    one: Object = {"kind": "Reachability", "vantage": "zone-a"}
    chosen = ("--all-namespaces", "--namespace")

    def served(**values: Any) -> list[str]:
        (found,) = of(helm.template(chart, values), "Deployment", "-prober-reachability-zone-a")
        return [argument for argument in arguments(found) if argument.startswith(chosen)]

    assert served(probers=[one]) == ["--namespace=bellwether"]
    assert served(probers=[one], watchAllNamespaces=True) == ["--all-namespaces"]
    assert served(probers=[one], watchNamespaces=["a", "b"]) == ["--namespace=a", "--namespace=b"]
    own = {"probers": [{**one, "namespaces": ["c"]}], "watchNamespaces": ["a", "b"]}
    (found,) = of(helm.template(chart, own), "Deployment", "-zone-a-c")
    assert "--namespace=c" in arguments(found)


def test_images_come_from_default_registry_parents_registry_or_their_own(helm: Helm, chart: Path):
    mirror = {"global": {"imageRegistry": "mirror.example.com", "imagePullSecrets": [{"name": "a"}]}}
    values = {"imagePullSecrets": [{"name": "b"}], "image": {"repository": "kafka/bellwether", "tag": "1"}}
    prober = {"kind": "Plugin", "plugin": "VolumeHealth", "vantage": "z", "image": "plugins.example.com/own:2"}

    def images(**more: Any) -> set[str]:
        objects = helm.template(chart, {**values, **more, "probers": [prober]})
        return {c["image"] for _, spec in pods(objects) for c in spec["containers"]}

    own = "plugins.example.com/own:2"
    assert images() == {f"{REGISTRY}/kafka/bellwether:1", own}
    assert images(image={**values["image"], "registry": ""}) == {"kafka/bellwether:1", own}
    assert images(**mirror) == {"mirror.example.com/kafka/bellwether:1", own}
    nearer = {"image": {**values["image"], "registry": "near.example.com/all"}}
    assert images(**nearer) == {"near.example.com/all/kafka/bellwether:1", own}
    assert images(**mirror, **nearer) == {"mirror.example.com/kafka/bellwether:1", own}, (
        "as in other charts, global comes first"
    )
    objects = helm.template(chart, {**values, **mirror})
    assert all(spec["imagePullSecrets"] == [{"name": "b"}, {"name": "a"}] for _, spec in pods(objects))


def test_what_a_platform_team_sets_reaches_its_objects(helm: Helm, chart: Path):
    objects = helm.template(chart, chart.parents[1] / "tests/integration/chart/good/platform-team.yaml")
    (prober,) = of(objects, "Deployment", "-prober-reachability-eu-west-1a")
    spec = prober["spec"]["template"]["spec"]
    zone, host = spec["topologySpreadConstraints"]
    assert zone["labelSelector"]["matchLabels"] == prober["spec"]["selector"]["matchLabels"]
    assert host["labelSelector"]["matchLabels"] == {"app.kubernetes.io/name": "bellwether"}
    assert spec["priorityClassName"] == "system-cluster-critical"
    (operator,) = of(objects, "Deployment", "-operator")
    assert operator["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1}
    roles = {o["metadata"].get("annotations", {}).get("example.com/role") for o in of(objects, "ServiceAccount")}
    assert roles == {None, "probe"}
    for monitor, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
        (found,) = of(objects, monitor)
        assert found["metadata"]["annotations"] == {"example.com/team": "kafka"}
        assert found["spec"][endpoints][0]["scrapeTimeout"] == "20s"
        assert found["spec"][endpoints][0]["relabelings"] == [{"targetLabel": "cluster", "replacement": "eu-west-1"}]
        assert found["spec"][endpoints][0]["metricRelabelings"][0]["action"] == "drop"
    for _, pod in pods(objects):
        container, bundle = pod["containers"][0], "/etc/bellwether-trust/bundle.pem"
        assert {"name": "SSL_CERT_FILE", "value": bundle} in container["env"]
        assert {"name": "trust-bundle", "configMap": {"name": "corporate-ca"}} in pod["volumes"]


def test_further_containers_are_added(helm: Helm, chart: Path):
    more = {"extraContainers": [{"name": "proxy", "image": "proxy"}], "initContainers": [{"name": "a", "image": "a"}]}
    (operator,) = of(helm.template(chart, {"operator": more}), "Deployment", "-operator")
    spec = operator["spec"]["template"]["spec"]
    assert [c["name"] for c in spec["containers"]] == ["operator", "proxy"]
    assert spec["initContainers"] == [{"name": "a", "image": "a"}]


def test_shards_share_the_policies_and_an_account(helm: Helm, chart: Path):
    prober = {"kind": "Reachability", "vantage": "zone-a", "shards": 2}
    objects = helm.template(chart, {"probers": [prober], "networkPolicy": {"enabled": True}})
    found = [o for o in of(objects, "Deployment") if "zone-a" in o["metadata"]["name"]]
    assert [one["metadata"]["name"][-8:] for one in found] == ["zone-a-1", "zone-a-2"]
    assert [next(a for a in arguments(one) if "shard" in a) for one in found] == ["--shard=1/2", "--shard=2/2"]
    selectors = [one["spec"]["selector"]["matchLabels"] for one in found]
    assert selectors[0] != selectors[1]
    guarded = [o["spec"]["podSelector"]["matchLabels"] for o in of(objects, "NetworkPolicy")]
    assert all(selector in guarded for selector in selectors)
    assert {one["spec"]["template"]["spec"]["serviceAccountName"] for one in found} == {
        "bellwether-prober-reachability-zone-a"
    }


def test_where_any_secret_may_be_read_only_labelled_ones_are(helm: Helm, chart: Path):
    probers = [{"kind": "Replication"}, {"kind": "Reachability", "vantage": "z", "secretNames": ["own"]}]
    objects = helm.template(chart, {"rbac": {"anySecret": True}, "probers": probers})
    labelled = {o["metadata"]["name"] for o in of(objects, "Deployment") if "--labelled-secrets" in arguments(o)}
    assert labelled == {"bellwether-operator", "bellwether-prober-replication"}
