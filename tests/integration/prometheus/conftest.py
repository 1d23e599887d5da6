"""Real Prometheus servers that remember what exporters said, and one that scrapes pages of the test's making."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from realparts.prometheus import PrometheusServer
from testkit.processes.exporters import Site, host, node_by_address, node_by_name, node_of_host, past, pod_monitor

# Each answers by the exporters that it has; every one has broker 1 ill.
SITES: dict[str, Callable[[float], Site]] = {
    "JMX exporter under Strimzi": lambda now: Site(now, pod_monitor).jmx().nodes(node_by_address).claims().ebs(),
    "Metrics Reporter under Strimzi": (
        lambda now: Site(now, pod_monitor).reporter().nodes(node_by_name).claims().cloudwatch()
    ),
    "machines with a broker label": lambda now: Site(now, host).jmx("_count").nodes(node_of_host).blackbox(),
    "a broker that leads nothing": lambda now: Site(now, pod_monitor, leading=(1, 3)).jmx(),
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
