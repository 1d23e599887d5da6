"""Brokers as Kubernetes objects: what one part says of another holds, and Pod Security's strictest rules are kept."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from node import addresses
from nodeparts import kafka_pods
from nodeparts.kafka_pods import BROKERS, DATA, SLOW

STORAGE = {"name": "bellwether-storage", "volumeMounts": [{"name": "data", "mountPath": str(DATA)}]}
SELF = {"name": "bellwether-self", "env": [{"name": "X", "value": "1"}]}


def the(kind: str, objects: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next(one for one in objects if one["kind"] == kind)


def pod() -> Mapping[str, Any]:
    found: Mapping[str, Any] = the("StatefulSet", kafka_pods.brokers([STORAGE, SELF]))["spec"]["template"]["spec"]
    return found


def test_a_broker_finds_its_settings_by_the_number_that_ends_its_pods_name() -> None:
    files = the("ConfigMap", kafka_pods.brokers())["data"]
    stateful = the("StatefulSet", kafka_pods.brokers())["spec"]
    first = stateful["ordinals"]["start"]
    assert set(files) == {f"broker-{number}.properties" for number in range(first, first + stateful["replicas"])}
    for broker in BROKERS:
        assert f"\nnode.id={broker}\n" in files[f"broker-{broker}.properties"]


@pytest.mark.parametrize("broker", BROKERS)
def test_outsiders_are_sent_to_the_load_balancer_and_brokers_to_each_other(broker: int) -> None:
    internal, external = kafka_pods.settings(broker)["advertised.listeners"].split(",")
    ports = {port["port"] for port in the("Service", kafka_pods.balancer())["spec"]["ports"]}
    address, _, port = external.removeprefix("EXTERNAL://").partition(":")
    assert address == the("Service", kafka_pods.balancer())["spec"]["clusterIP"]
    assert int(port) in ports
    assert internal.startswith(f"INTERNAL://kafka-{broker}.kafka.kafka.svc.cluster.local:")


def test_the_load_balancers_address_is_one_of_a_service() -> None:
    address = ipaddress.ip_address(kafka_pods.BALANCER_ADDRESS)
    assert address in ipaddress.ip_network(addresses.SERVICES)
    assert str(address) not in {addresses.API_SERVICE, addresses.DNS_SERVICE}


def test_every_claim_of_every_broker_has_its_volume() -> None:
    claims = the("StatefulSet", kafka_pods.brokers())["spec"]["volumeClaimTemplates"]
    wanted = {f"{claim['metadata']['name']}-kafka-{broker}" for claim in claims for broker in BROKERS}
    volumes = kafka_pods.volumes(Path("/volumes"))
    assert {volume["spec"]["claimRef"]["name"] for volume in volumes} == wanted
    assert {volume["spec"]["hostPath"]["path"] for volume in volumes} == {f"/volumes/{name}" for name in wanted}


def test_whoever_shares_the_data_feels_the_slow_disk_and_nobody_else_does() -> None:
    containers = {container["name"]: container for container in pod()["containers"]}
    storage = containers["bellwether-storage"]
    assert {"name": "LD_PRELOAD", "value": f"{SLOW}/slowdisk.so"} in storage["env"]
    assert {mount["mountPath"] for mount in storage["volumeMounts"]} == {str(DATA), str(SLOW)}
    assert containers["bellwether-self"] == SELF


def test_the_metadata_lies_apart_from_the_data_so_that_a_slow_disk_slows_the_data_alone() -> None:
    settings = kafka_pods.settings(1)
    assert not Path(settings["metadata.log.dir"]).is_relative_to(settings["log.dirs"])
    assert kafka_pods.SLOW_DISK["BELLWETHER_SLOWDISK_DIRECTORY"] == settings["log.dirs"]


def test_every_mount_has_its_volume() -> None:
    claims = {"data", "metadata"}
    known = claims | {volume["name"] for volume in pod()["volumes"]}
    every = [*pod()["containers"], *pod()["initContainers"]]
    assert {mount["name"] for container in every for mount in container.get("volumeMounts", [])} <= known


def test_our_own_containers_are_confined() -> None:
    for spec in (pod(), the("Deployment", kafka_pods.balancer())["spec"]["template"]["spec"]):
        assert spec["securityContext"]["runAsNonRoot"]
        ours = [
            one for one in [*spec["containers"], *spec.get("initContainers", [])] if "bellwether" not in one["name"]
        ]
        assert all(container["securityContext"] == kafka_pods.CONFINED for container in ours)


def test_the_clusters_id_is_one_that_kafka_takes() -> None:
    assert len(base64.urlsafe_b64decode(kafka_pods.CLUSTER_ID + "==")) == 16
