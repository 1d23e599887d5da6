"""A policy that names a Strimzi cluster, end to end: what it finds, whom it demotes, and what people see of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from bellwether.core.signals import Reading
from testkit.processes.sites import condition, demoted

if TYPE_CHECKING:
    from testkit.kubernetes.strimzi_fixture import StrimziSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


def test_a_policy_of_a_mode_and_a_name_demotes_a_broker_and_gives_its_leaders_back(bare: StrimziSite) -> None:
    bare.everything()
    site = bare.site
    site.topics()
    began = time.monotonic()
    body = bare.smallest_policy()
    assert body["spec"] == {"mode": "Enforce", "kafka": {"strimzi": {"clusterName": "my-cluster"}}}
    site.operator()
    bare.until_ready()
    site.tell(f"found and settled {time.monotonic() - began:.1f} s after the policy and the operator's start")
    before = site.demote_and_wait(1, "its disk is being exchanged")
    site.lift_and_wait(1, before)
    site.until(lambda: not demoted(site.health(1)), 30, "the promotion is reported")


def test_people_see_which_cluster_was_found_and_which_pod_is_which_broker(strimzi: StrimziSite) -> None:
    site = strimzi.site
    header, row = (line.split() for line in site.kubectl("get", "lp").splitlines())
    assert dict(zip(header, row, strict=True))["CLUSTER"] == "my-cluster"
    status = site.status()
    assert status["strimzi"] == {
        "namespace": site.namespace,
        "listener": "tls",
        "user": "bellwether",
        "paused": False,
        "rebalancing": [],
    }
    assert status["clusterId"] == strimzi.kafka.cluster_id
    assert {b: (site.health(b)["pod"], site.health(b)["rack"]) for b in (1, 2, 3)} == {
        1: ("my-cluster-brokers-1", "zone-a"),
        2: ("my-cluster-brokers-2", "zone-b"),
        3: ("my-cluster-brokers-3", "zone-c"),
    }
    assert "my-cluster-brokers-2" in site.kubectl("get", "bh", "main-2", "-o", "wide")


def test_probers_find_the_listener_of_clients_outside_and_a_broker_that_is_cut_off_is_demoted(
    strimzi: StrimziSite,
) -> None:
    site, proxy = strimzi.site, strimzi.kafka.proxy
    assert proxy is not None
    site.change(detection={"externalReachability": {"vantages": ["zone-a", "zone-b"]}})
    for vantage in ("zone-a", "zone-b"):
        site.prober(vantage)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 60, "all are Healthy", site.logs)
    before = site.orders()
    proxy.cut("broker-2")
    site.until_demoted(2, before)
    assert site.verdict(2) == ("Sick", "ExternallyUnreachable")
    entries = site.health(2)["signals"]
    assert {(e["reading"], e["control"]) for e in entries} == {(str(Reading.FAILING), str(Reading.PASSING))}
    proxy.mend("broker-2")
    site.until_restored(before)
    site.until(lambda: condition(site.health(2), "Demoted")["status"] == "False", 30, "that is reported")
