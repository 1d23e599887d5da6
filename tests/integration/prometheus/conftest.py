"""Real Prometheus servers that remember what exporters said, and one that scrapes pages of the test's making."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from realparts.prometheus import PrometheusServer
from testkit.processes.exporters import (
    Site,
    host,
    msk,
    node_by_address,
    node_by_name,
    node_of_host,
    past,
    pod_monitor,
    pool,
)


def of_ids(now: float, target: Callable[[int], dict[str, str]]) -> Site:
    """Brokers 100, 101 and 102 in pods that are numbered from 0; 101 is ill."""
    return Site(now, target, brokers=(100, 101, 102), ill=(101,), leading=(100, 101, 102))


# Each answers by the exporters that it has; every one has broker 1 ill.
SITES: dict[str, Callable[[float], Site]] = {
    "JMX exporter under Strimzi": lambda now: Site(now, pod_monitor).jmx().nodes(node_by_address).claims().ebs(),
    "Metrics Reporter under Strimzi": (
        lambda now: Site(now, pod_monitor).reporter().nodes(node_by_name).claims().cloudwatch()
    ),
    "machines with a broker label": lambda now: Site(now, host).jmx("_count").nodes(node_of_host).blackbox(),
    "a broker that leads nothing": lambda now: Site(now, pod_monitor, leading=(1, 3)).jmx(),
    "a second pool": lambda now: of_ids(now, lambda broker: pool(broker, "kafka-broker", "kafka", 100)).jmx(),
    "default names on Amazon MSK": lambda now: Site(now, msk).default_names(),
    "Bitnami's rules": lambda now: Site(now, pod_monitor).bitnami(),
    "kafka_exporter": lambda now: Site(
        now, lambda _: {"namespace": "kafka", "instance": "10.1.2.3:9308"}
    ).kafka_exporter(),
    "one of two regions": lambda now: of_ids(now, lambda broker: pool(broker, "kafka", "east", 100)).jmx(),
    "addresses alone": lambda now: Site(now, msk).jmx(),
    "two clusters": lambda now: Site(now, pod_monitor).jmx(),
}


@pytest.fixture(scope="module", params=["JMX exporter under Strimzi"])
def remembering(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has scraped a site for twenty minutes."""
    now = time.time()
    site = SITES[request.param](now)
    if request.param == "two clusters":
        site.lines.extend(Site(now, lambda broker: pod_monitor(broker, "other"), ill=()).jmx().lines)
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    server.remember(past(site.lines, now))
    with server:
        yield server
