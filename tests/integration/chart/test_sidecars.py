"""Sidecars: pasted into a broker's pod, or added by admission; either way the API server accepts what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellwether.ports.errors import Terminal
from realparts import gotools
from realparts.apiserver import ApiServer
from realparts.helm import Helm
from testkit.kubernetes.strimzi_pods import (
    INJECTED,
    TWO_KINDS,
    a_broker,
    a_plain_broker,
    added,
    created,
    dry_run,
    pasted,
    quarantinable,
    until_added,
)
from waiting import until

pytestmark = [pytest.mark.chart, pytest.mark.apiserver]
by_policy = pytest.mark.skipif(gotools.KUBERNETES_MINOR < 36, reason="MutatingAdmissionPolicy v1 came with 1.36")


def test_what_is_to_be_pasted_makes_pod_that_is_accepted(
    helm: Helm, chart: Path, chartserver: ApiServer, restricted: str
):
    sidecars = {"accounts": [{"name": "orders-kafka", "policy": "orders"}], "dataVolumes": [{"name": "data-0"}]}
    objects = helm.template(chart, {"sidecars": sidecars}, namespace=restricted)
    pod = a_broker("broker-7")
    pod["spec"]["containers"] += pasted(objects, f"{restricted}.orders.orders-kafka.yaml")
    found = created(chartserver, restricted, pod)
    storage, self_check = found["spec"]["containers"][1:]
    assert storage["args"][:4] == ["supervise", "--", "probe", "storage"]
    assert storage["args"][4:6] == ["--policy=orders", f"--namespace={restricted}"]
    assert storage["args"][7] == "--directory=data-0=/var/lib/kafka/data-0"
    assert storage["volumeMounts"] == [{"name": "data-0", "mountPath": "/var/lib/kafka/data-0"}]
    assert "--directory=data-0=/var/lib/kafka/data-0" in self_check["args"]
    assert self_check["volumeMounts"] == [{"name": "data-0", "mountPath": "/var/lib/kafka/data-0", "readOnly": True}]


def test_node_pools_of_one_policy_have_their_own_containers_to_paste(helm: Helm, chart: Path):
    large = {"dataVolumes": [{"name": "a"}, {"name": "b"}], "externalPort": 9095, "brokerRunAsUser": 1000}
    pools = [
        {"name": "small", "policy": "orders", "dataVolumes": None},
        {"name": "large", "policy": "orders", **large, "ignoredNetworks": []},
    ]
    sidecars = {"accounts": pools, "ignoredNetworks": ["10.0.0.0/8"], "quarantineAgent": {"enabled": True}}
    objects = helm.template(chart, {"sidecars": sidecars}, namespace="kafka")
    found = {name: pasted(objects, f"kafka.orders.{name}.yaml") for name in ("small", "large")}
    mounts = {name: [m["name"] for m in containers[0]["volumeMounts"]] for name, containers in found.items()}
    assert mounts == {"small": ["data"], "large": ["a", "b"]}
    self_checks = {name: containers[1]["args"] for name, containers in found.items()}
    assert {"--port=9094", "--ignore=10.0.0.0/8"} <= set(self_checks["small"])
    assert "--port=9095" in self_checks["large"]
    assert "--ignore=10.0.0.0/8" not in self_checks["large"]
    users = {name: [c["securityContext"]["runAsUser"] for c in containers] for name, containers in found.items()}
    assert users == {"small": [10001, 10001, 1001], "large": [10001, 10001, 1000]}


@by_policy
def test_admission_adds_sidecars_to_brokers_only(
    installing: Helm, chart: Path, chartserver: ApiServer, restricted: str
):
    values: dict[str, Any] = {"sidecars": TWO_KINDS, "crds": {"install": False}, "admission": {"enabled": False}}
    values |= {"imagePullSecrets": [{"name": "ours"}, {"name": "theirs"}]}
    given = installing.given(values)
    installing.run("install", "sides", chart, "--namespace", restricted, *given)
    try:
        found = until_added(chartserver, restricted, 3)
        objects = installing.template(
            chart, {**values, "sidecars": {**TWO_KINDS, "inject": False}}, release="sides", namespace=restricted
        )
        wanted = pasted(objects, f"{restricted}.orders.orders-kafka.yaml")
        assert added(found, wanted) == wanted

        two = a_broker("pay-brokers-5", "pay-kafka", ("data-0", "data-1"))
        wanted = pasted(objects, f"{restricted}.payments.pay-kafka.yaml")
        made = dry_run(chartserver, restricted, two)
        assert added(made, wanted) == wanted
        assert [m["name"] for m in made["spec"]["containers"][1]["volumeMounts"]][:2] == ["data-0", "data-1"]
        one = dry_run(chartserver, restricted, a_broker("pay-brokers-6", "pay-kafka"))
        assert len(one["spec"]["containers"]) == 1, "it would be refused for the volume that it does not have"

        first = dry_run(chartserver, restricted, a_broker("orders-brokers-5"))
        assert first["spec"]["imagePullSecrets"] == [{"name": "ours"}, {"name": "theirs"}]
        has_some = a_broker("orders-brokers-5")
        has_some["spec"]["imagePullSecrets"] = [{"name": "theirs"}, {"name": "its-own"}]
        kept = dry_run(chartserver, restricted, has_some)["spec"]["imagePullSecrets"]
        assert kept == [{"name": "theirs"}, {"name": "its-own"}, {"name": "ours"}]

        other_disk = a_broker("orders-brokers-6", volumes=["x"])
        assert len(dry_run(chartserver, restricted, other_disk)["spec"]["containers"]) == 1
        stranger = dry_run(chartserver, restricted, a_broker("other-0", account="other"))
        assert len(stranger["spec"]["containers"]) == 1
        unlabelled = a_broker("other-1")
        unlabelled["metadata"]["labels"] = {}
        assert len(dry_run(chartserver, restricted, unlabelled)["spec"]["containers"]) == 1
    finally:
        installing.run("uninstall", "sides", "--namespace", restricted, "--no-hooks")


@by_policy
def test_one_switch_gives_brokers_an_agent_that_can_hold_them(
    installing: Helm, chart: Path, chartserver: ApiServer, restricted: str
):
    sidecars = {**INJECTED, "quarantineAgent": {"enabled": True}}
    values = {"sidecars": sidecars, "crds": {"install": False}}
    installing.run("install", "wards", chart, "--namespace", restricted, *installing.given(values))
    try:
        pod = until_added(chartserver, restricted, 4)
        assert pod["spec"]["shareProcessNamespace"] is True
        agent = pod["spec"]["containers"][-1]
        assert (agent["name"], agent["args"][2]) == ("bellwether-quarantine-agent", "quarantine-agent")
        assert quarantinable(pod) == (True, (1001, None), {"kafka": 750})
        plain = dry_run(chartserver, restricted, a_plain_broker("kafka-1"))
        assert quarantinable(plain) == (True, (1000, 2000), {"exporter": 30, "broker": 750})

        loosen = {"pod-security.kubernetes.io/enforce": "privileged"}
        chartserver.kubectl("label", "namespace", restricted, "--overwrite", *(f"{k}={v}" for k, v in loosen.items()))
        beside = a_broker("orders-brokers-4")
        beside["spec"]["hostPID"] = True
        made = once_allowed(chartserver, restricted, beside)
        assert len(made["spec"]["containers"]) == 1, "it would be refused, and the broker not start"
    finally:
        installing.run("uninstall", "wards", "--namespace", restricted, "--no-hooks")


def once_allowed(server: ApiServer, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    """A pod as it would be made, once Pod Security has heard that the namespace is not restricted any more."""
    return until(lambda: dry_run(server, namespace, pod), 60, every=0.5, ignoring=(Terminal,))
