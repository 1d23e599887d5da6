"""``bellwether probe prometheus`` as a process: a real Prometheus scrapes, a real API server keeps what is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEASES,
    POLICIES,
    SECRETS,
    SIGNAL_SOURCES,
    KubernetesClient,
    connect,
)
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from realparts.apiserver import ApiServer
from realparts.ports import LOOPBACK
from realparts.prometheus import PrometheusServer
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.processes.exporters import BROKERS, Site, page, pod_monitor
from waiting import limit, until

pytestmark = [pytest.mark.prometheus, pytest.mark.apiserver]

ROOT = Path(__file__).parents[3]
IDLE = {"name": "idle", "preset": "NetworkProcessorIdle", "comparison": "Below", "threshold": "0.2", "peerRatio": 3}
OFFLINE = {"name": "offline", "preset": "OfflineLogDirectories", "threshold": "0"}


class Exporter:
    """The metrics page of one broker's exporter; ``ill`` makes it tell of trouble."""

    def __init__(self, broker: int) -> None:
        self.ill = False
        exporter = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                now = time.time()
                site = Site(now, lambda _broker: {}, (broker,), (broker,) if exporter.ill else (), 1e6).jmx()
                body = page(site.lines, now).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Bench:
    """One policy with its BrokerHealths, and probers of it."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        self.server = server
        self.api: KubernetesClient = connect(server.kubeconfig)
        self.namespace = server.create_namespace(f"prometheus-{uuid.uuid4().hex[:8]}")
        self.directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []

    def policy(self, url: str, *rules: dict[str, Any], **settings: Any) -> None:
        said = {"url": url, "rules": list(rules), "periodSeconds": 1}
        body = api_objects.naming("prom")
        body["metadata"]["namespace"] = self.namespace
        source = api_objects.source("prom", self.namespace, prometheus={**said, **settings})
        self.api.create(SIGNAL_SOURCES, self.namespace, source)
        BrokerHealths(self.api, SystemClock()).ensure_broker_healths(
            self.api.create(POLICIES, self.namespace, body), list(BROKERS)
        )

    def rules(self, *rules: dict[str, Any]) -> None:
        self.api.merge(SIGNAL_SOURCES, self.namespace, "prom", {"spec": {"prometheus": {"rules": list(rules)}}})

    def ready(self) -> tuple[str, str]:
        """Status and message of the source's condition Ready."""
        (ready,) = self.api.get(SIGNAL_SOURCES, self.namespace, "prom")["status"]["conditions"]
        return ready["status"], ready["message"]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        with (self.directory / f"prober-{len(self.processes)}.log").open("wb") as out:
            command = [sys.executable, "-m", "bellwether", "probe", "prometheus", "--policy", "main"]
            process = subprocess.Popen(
                [*command, "-n", self.namespace, *more],
                env={**os.environ, "KUBECONFIG": str(self.server.kubeconfig), **LOOPBACK},
                stdout=out,
                stderr=out,
            )
        self.processes.append(process)
        return process

    def entry(self, broker: int, source: str) -> dict[str, Any]:
        health = self.api.get(BROKER_HEALTHS, self.namespace, object_names.broker_health("main", broker))
        entries = (health.get("status") or {}).get("signals") or []
        return dict(next((e for e in entries if (e["type"], e["source"]) == ("Prometheus", source)), {}))

    def readings(self, source: str) -> list[Any]:
        return [self.entry(broker, source).get("reading") for broker in BROKERS]

    def logs(self) -> str:
        return "\n".join(p.read_text() for p in sorted(self.directory.glob("prober-*.log")))

    def until(self, wanted: Callable[[], bool], seconds: float = 90) -> None:
        until(wanted, seconds, seen=self.logs)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def bench(apiserver: ApiServer, tmp_path: Path) -> Iterator[Bench]:
    apiserver.apply(ROOT / "crds")
    bench = Bench(apiserver, tmp_path)
    yield bench
    bench.stop()


@pytest.fixture
def exporters() -> Iterator[dict[int, Exporter]]:
    made = {broker: Exporter(broker) for broker in BROKERS}
    yield made
    for one in made.values():
        one.stop()


def targets(exporters: dict[int, Exporter]) -> dict[str, dict[str, str]]:
    """Each broker's page with the labels that Strimzi's PodMonitor would give it; ``instance`` is the address."""
    return {
        one.address: {k: v for k, v in pod_monitor(broker).items() if k not in ("job", "instance")}
        for broker, one in exporters.items()
    }


@pytest.fixture
def scraping(exporters: dict[int, Exporter], tmp_path: Path) -> Iterator[PrometheusServer]:
    with PrometheusServer(tmp_path / "prometheus", targets=targets(exporters)) as server:
        yield server


WELL = ["Passing", "Passing", "Passing"]


def test_rules_fail_a_broker_and_pass_it_again_each_by_itself_under_one_lease(
    bench: Bench, scraping: PrometheusServer, exporters: dict[int, Exporter]
) -> None:
    bench.policy(scraping.url, IDLE, OFFLINE)
    process = bench.start()
    bench.until(lambda: bench.readings("idle") == WELL and bench.readings("offline") == WELL)
    exporters[1].ill = True
    bench.until(lambda: bench.readings("idle") == ["Failing", "Passing", "Passing"])
    bench.until(lambda: bench.readings("offline") == ["Failing", "Passing", "Passing"])
    entry = bench.entry(1, "idle")
    assert entry["message"] == "0.02 is below 0.2 and at least 3 times below the other brokers' median of 0.98"
    assert entry["value"] == "0.02"
    (lease,) = bench.api.list(LEASES, bench.namespace)
    assert lease["metadata"]["name"] == "bellwether-prober-main.prometheus.rules" == entry["leaseName"]
    exporters[1].ill = False
    bench.until(lambda: bench.readings("idle") == WELL and bench.readings("offline") == WELL)
    bench.until(lambda: bench.ready() == ("True", "a prober uses it"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()


@pytest.mark.slow
def test_a_hanging_server_makes_all_unknown_until_it_answers_again(
    bench: Bench, scraping: PrometheusServer, exporters: dict[int, Exporter]
) -> None:
    bench.policy(scraping.url, IDLE)
    bench.start()
    bench.until(lambda: bench.readings("idle") == WELL)
    assert scraping.process is not None
    silences = bench.logs().count("prometheus_query_failed")  # it may have been slow to begin with
    scraping.process.pause()
    try:
        exporters[1].ill = True
        bench.until(lambda: bench.readings("idle") == ["Unknown"] * 3)
        assert bench.entry(1, "idle")["message"] == "Prometheus does not answer in time"
        (before,) = bench.api.list(LEASES, bench.namespace)
        bench.until(lambda: bench.api.list(LEASES, bench.namespace) != [before])
        assert bench.logs().count("prometheus_query_failed") == silences + 1, "said once, however often it is asked"
    finally:
        scraping.process.resume()
    bench.until(lambda: bench.readings("idle") == ["Failing", "Passing", "Passing"])


@pytest.mark.slow
def test_a_broker_that_is_no_longer_scraped_is_unknown_and_its_peers_are_not(
    bench: Bench, scraping: PrometheusServer, exporters: dict[int, Exporter]
) -> None:
    bench.policy(scraping.url, IDLE)
    bench.start()
    bench.until(lambda: bench.readings("idle") == WELL)
    exporters[2].stop()
    bench.until(lambda: bench.readings("idle") == ["Passing", "Unknown", "Passing"])
    assert bench.entry(2, "idle")["message"] == "the query returns nothing for this broker"


@pytest.mark.slow
def test_rule_that_is_taken_from_policy_leaves_no_entry_behind(bench: Bench, scraping: PrometheusServer) -> None:
    bench.policy(scraping.url, IDLE, OFFLINE)
    bench.start()
    bench.until(lambda: bench.readings("idle") == WELL and bench.readings("offline") == WELL)
    bench.rules(OFFLINE)
    bench.until(lambda: bench.readings("idle") == [None] * 3)
    assert bench.readings("offline") == WELL


@pytest.mark.slow
def test_tls_by_authority_of_secret_and_secret_that_comes_late(
    bench: Bench, exporters: dict[int, Exporter], tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "tls")
    server = PrometheusServer(
        tmp_path / "prometheus", targets=targets(exporters), certificate=authority.issue("prometheus")
    )
    with server:
        bench.policy(server.url, IDLE, caSecretName="prometheus")
        bench.start()
        bench.until(lambda: bench.readings("idle") == ["Unknown"] * 3)
        assert "secret" in bench.entry(1, "idle")["message"]
        bench.until(lambda: bench.ready()[0] == "False")
        assert "rule idle: Prometheus cannot be queried: caSecretName: secret" in bench.ready()[1]
        bench.server.kubectl(
            "create", "secret", "generic", "prometheus", "-n", bench.namespace, f"--from-file=ca.crt={authority.path}"
        )
        assert bench.api.get(SECRETS, bench.namespace, "prometheus")
        bench.until(lambda: bench.readings("idle") == WELL)
        bench.until(lambda: bench.ready() == ("True", "a prober uses it"))


@pytest.mark.slow
def test_one_look_prints_a_table_writes_nothing_and_fails_on_a_failing_broker(
    bench: Bench, scraping: PrometheusServer, exporters: dict[int, Exporter]
) -> None:
    exporters[1].ill = True
    bench.policy(scraping.url, IDLE, {"name": "wrong", "query": "sum by (", "threshold": "1"})
    ill = 'kafka_network_socketserver_networkprocessoravgidle_percent{pod="main-broker-1"} < 0.2'
    bench.until(lambda: len(scraping.query('up{pod=~"main.*"} == 1')) == 3 and len(scraping.query(ill)) == 1)
    assert bench.start("--once").wait(limit(90)) == 4
    table = bench.logs()
    assert "idle   1       Failing     0.02   0.98   < 0.2" in table, table
    assert "idle   2       Passing     0.98" in table, table
    assert "refuses the query (400, bad_data): " in table, table
    assert bench.readings("idle") == [None] * 3
    assert bench.api.list(LEASES, bench.namespace) == []
