"""One prober for several Kafka clusters: a new policy is taken up, and a cluster that hangs delays no other."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES, POLICIES
from realparts.ports import HeldPorts
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

WELL, CUT = ("Passing", "Passing"), ("Failing", "Passing")
PATIENCE = 60


@pytest.fixture
def other_kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A second Kafka cluster of two brokers, which its test may freeze."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(2, directory=tmp_path / "other") as cluster:
        yield cluster


@pytest.fixture
def other(bench: Any, other_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Any]:
    """A policy for it in a namespace of its own."""
    folder = tmp_path / "probers"
    folder.mkdir()
    other = type(bench)(bench.server, other_kafka.bootstrap, sorted(other_kafka.brokers), folder)
    yield other
    other.stop()


def series(page: str, name: str) -> dict[tuple[str, str], float]:
    """Values of a metric with a broker label, by the namespace of the policy and the broker."""
    found = {}
    for line in page.splitlines():
        if line.startswith(f"{name}{{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found[labels["namespace"], labels["broker"]] = float(line.rsplit(" ", 1)[1])
    return found


def test_a_cluster_that_hangs_delays_no_probe_of_another_and_a_new_policy_needs_no_restart(
    bench: Any, other: Any, breakable_kafka: KafkaCluster, other_kafka: KafkaCluster
) -> None:
    with HeldPorts() as ports:
        port = ports.take()
    both = ("-n", bench.namespace, "-n", other.namespace)
    bench.start("reachability", "--vantage", "here", "--metrics-port", str(port), policies=both)
    bench.until(lambda: bench.readings(1, 2, 3) == [WELL] * 3 and other.readings(1, 2) == [WELL] * 2, PATIENCE)

    for broker in other_kafka.brokers:
        other_kafka.broker(broker).pause()
    bench.until(lambda: [e[0] for e in other.readings(1, 2)] == ["Failing"] * 2, PATIENCE)
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    bench.until(lambda: bench.readings(1, 2, 3) == [WELL, CUT, WELL], PATIENCE)
    proxy.mend("broker-2")
    bench.until(lambda: bench.readings(1, 2, 3) == [WELL] * 3, PATIENCE)

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=limit(10)) as answer:
        page = answer.read().decode()
    readings = series(page, "bellwether_probe_reading")
    assert {key for key, reading in readings.items() if reading == 1.0} == {
        (bench.namespace, str(broker)) for broker in (1, 2, 3)
    }
    assert {key for key, reading in readings.items() if reading != 1.0} == {
        (other.namespace, str(broker)) for broker in (1, 2)
    }
    assert page.count("# TYPE bellwether_probe_reading gauge") == 1
    assert 'bellwether_policies_served{source="here",type="ExternalReachability"} 2.0' in page

    for broker in other_kafka.brokers:
        other_kafka.broker(broker).resume()
    other.until(lambda: other.readings(1, 2) == [WELL] * 2, PATIENCE)

    second = {**bench.api.get(POLICIES, bench.namespace, "main"), "metadata": {"name": "more"}}
    second["metadata"]["namespace"] = bench.namespace
    second.pop("status", None)
    bench.api.create(POLICIES, bench.namespace, second)
    bench.until(lambda: len(bench.api.list(LEASES, bench.namespace)) == 2, PATIENCE)
    bench.api.delete(POLICIES, bench.namespace, "more")

    def held() -> list[str]:
        leases = bench.api.list(LEASES, bench.namespace)
        return [lease["metadata"]["name"] for lease in leases if lease["spec"].get("holderIdentity")]

    bench.until(lambda: held() == ["bellwether-prober-main.externalreachability.here"], PATIENCE)
    assert bench.readings(1, 2, 3) == [WELL] * 3
