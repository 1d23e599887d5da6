"""Probers next to real brokers whose pods are numbered otherwise: what is slow is demoted, and no one else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from realparts.processes import ManagedProcess
from testkit.processes.sites import POLICY

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

# As with controllers and brokers in sets of their own, each of which begins to count at 0.
PODS = {"kafka-controller-1": 1, "kafka-broker-1": 2, "kafka-broker-2": 3}
SLOW = 2


def beside(site: Site, broker: int, pod: str, *arguments: str) -> ManagedProcess:
    """A storage prober in the pod of that name, which the environment tells as charts do."""
    command = [sys.executable, "-m", "bellwether", "probe", "storage", "--policy", POLICY, "-n", site.namespace]
    directory = ["--directory", str(site.kafka.broker(broker).log_dir)]
    environment = {**site.kafka.slow_disk(broker).environment(), "BELLWETHER_PROBE_STORAGE_BROKER": pod}
    return site.start(f"storage-{pod}", [*command, *directory, *arguments], environment)


def said(site: Site, broker: int) -> dict[str, tuple[str, str]]:
    """Reading and message of each source that reports writes of a broker."""
    signals = site.health(broker).get("signals", ())
    return {s["source"]: (s["reading"], s.get("message", "")) for s in signals if s["type"] == "StorageLatency"}


def test_a_slow_disk_demotes_the_broker_that_it_belongs_to_whatever_its_pod_is_called(site: Site) -> None:
    for pod, broker in PODS.items():
        beside(site, broker, pod)
    site.until(
        lambda: all(said(site, b).get(f"broker-{b}", ("",))[0] == "Passing" for b in PODS.values()), 60, "all pass"
    )
    site.kafka.slow_disk(SLOW).set(80)
    site.until(lambda: site.verdict(SLOW)[0] == "Sick", 90, "the slow broker is sick", site.status)
    site.until(lambda: all(p.leader != SLOW for p in site.partitions().values()), 60, "its leaders moved")
    assert {broker: set(said(site, broker)) for broker in PODS.values()} == {b: {f"broker-{b}"} for b in PODS.values()}
    for healthy in {*PODS.values()} - {SLOW}:
        assert site.verdict(healthy)[0] == "Healthy"
        assert any(p.leader == healthy for p in site.partitions().values())
    site.kafka.slow_disk(SLOW).clear()
    where = {broker: str(site.kafka.broker(broker).log_dir) for broker in PODS.values()}
    beside(site, 1, "kafka-controller-1", "--source", "broker-3")
    site.until(lambda: said(site, 3)["broker-3"][0] == "Unknown", 60, "two disks under one source are a conflict")
    message = said(site, 3)["broker-3"][1]
    assert where[1] in message
    assert where[3] in message
    assert set(said(site, 1)) == {"broker-1"}
