"""The files that the node's programs read say what they must, in forms that those programs read."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path

import yaml

from node import addresses, images, lifecycle, settings
from node.places import Places

PLACES = Places(Path("/somewhere/node"))


def test_containerd_keeps_everything_in_the_nodes_folder() -> None:
    read = tomllib.loads(settings.containerd(PLACES, "native"))
    cri = read["plugins"]["io.containerd.grpc.v1.cri"]
    assert read["root"] == "/somewhere/node/containerd"
    assert cri["containerd"]["snapshotter"] == "native"
    assert cri["cni"]["conf_dir"] == "/somewhere/node/settings/cni"
    assert cri["restrict_oom_score_adj"] is True


def test_the_kubelet_does_not_order_the_machines_groups_and_lets_nobody_in_unnamed() -> None:
    read = json.loads(settings.kubelet(PLACES, Path("/ca.pem")))
    assert read["cgroupDriver"] == "cgroupfs"
    assert read["cgroupsPerQOS"] is False
    assert read["enforceNodeAllocatable"] == []
    assert read["authentication"]["anonymous"]["enabled"] is False


def test_pods_get_addresses_of_the_bridge_and_none_that_is_taken() -> None:
    bridge = json.loads(settings.pod_network())["plugins"][0]
    (((given),),) = bridge["ipam"]["ranges"]
    first = ipaddress.ip_address(given["rangeStart"])
    assert first in ipaddress.ip_network(given["subnet"])
    assert first > ipaddress.ip_address(addresses.GATEWAY)
    assert bridge["ipMasq"] is False


def test_pods_services_and_the_link_share_no_address_within_the_nodes_network() -> None:
    link = ipaddress.ip_network(f"{addresses.HOST_END}/{addresses.LINK_BITS}", strict=False)
    parts = [ipaddress.ip_network(addresses.PODS), ipaddress.ip_network(addresses.SERVICES), link]
    assert all(part.subnet_of(ipaddress.ip_network(addresses.NETWORK)) for part in parts)  # type: ignore[arg-type]
    assert not any(a.overlaps(b) for a in parts for b in parts if a is not b)


def test_the_name_server_has_the_image_and_the_address_that_pods_are_told() -> None:
    listed = list(yaml.safe_load_all((lifecycle.MANIFESTS / "coredns.yaml").read_text()))
    service = next(one for one in listed if one["kind"] == "Service")
    deployment = next(one for one in listed if one["kind"] == "Deployment")
    assert service["spec"]["clusterIP"] == addresses.DNS_SERVICE
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == images.COREDNS_IMAGE
    assert json.loads(settings.kubelet(PLACES, Path("ca")))["clusterDNS"] == [addresses.DNS_SERVICE]
