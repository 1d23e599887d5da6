"""``bellwether sample --policy``: the policy says how to connect and where the history is; Prometheus what is read."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES, KubernetesClient, connect
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import list_rounds
from realparts.kafka import create_topics
from realparts.kafka_topics import delete_topics
from realparts.ports import LOOPBACK, HeldPorts
from testkit.kafka.producer import SteadyWriter
from testkit.kubernetes import api_objects
from testkit.loads.load_configs import options
from testkit.loads.sample_rounds import read_table
from waiting import limit, ran, until

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

ROOT = Path(__file__).parents[3]


@pytest.fixture
def namespace(apiserver: ApiServer) -> str:
    apiserver.apply(ROOT / "crds")
    return apiserver.create_namespace(f"load-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def topic(kafka: KafkaCluster) -> Iterator[str]:
    name = f"load-{uuid.uuid4().hex[:8]}"
    create_topics(kafka.bootstrap, {name: 2})
    yield name
    delete_topics(kafka.bootstrap, [name])


@pytest.fixture
def prometheus(topic: str) -> Iterator[str]:
    """Says of the topic that consumers read 3,000 bytes/s of it."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            result = [{"metric": {"topic": topic}, "value": [0, "3000"]}]
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def ports() -> Iterator[HeldPorts]:
    with HeldPorts() as held:
        yield held


def made(api: KubernetesClient, namespace: str, bootstrap: str) -> None:
    body = {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"name": "main", "namespace": namespace},
        "spec": {
            "mode": "Observe",
            "kafka": {"bootstrapServers": bootstrap.split(",")},
        },
    }
    api.create(POLICIES, namespace, body)


def read(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in list_rounds(store).rounds:
        table: Any = read_table(store, file.path)
        found += table.to_pylist()
    return found


@pytest.mark.slow
def test_a_policys_cluster_is_sampled_into_its_history_with_what_consumers_read(
    apiserver: ApiServer,
    namespace: str,
    kafka: KafkaCluster,
    topic: str,
    prometheus: str,
    ports: HeldPorts,
    tmp_path: Path,
) -> None:
    api, path, log = connect(apiserver.kubeconfig), tmp_path / "history", tmp_path / "log"
    store = Store.open(str(path / namespace / "main"))

    def noted(event: str) -> int:
        """How often this event was logged for metadata."""
        lines = log.read_text().splitlines()
        return sum(f'"event": "{event}"' in line and '"step": "metadata"' in line for line in lines)

    made(api, namespace, kafka.bootstrap)
    port = ports.take()
    command = [sys.executable, "-m", "bellwether", "sample", "--policy", "main", "-n", namespace, "--period", "1"]
    command += options(tmp_path, str(path))
    command += ["--prometheus", prometheus, "--metrics-port", str(port), "--log-format", "json"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, "KUBECONFIG": str(apiserver.kubeconfig), **LOOPBACK}
        )
    try:
        with SteadyWriter(kafka.bootstrap, topic, range(2), seconds=0.05):

            def dealt() -> list[float]:
                rows = [row for row in read(store) if row["topic"] == topic]
                return [row["consume_bytes_per_second"] for row in rows if row["consume_bytes_per_second"] is not None]

            def halves() -> bool:
                found = sorted(dealt())
                return len(found) >= 4 and found[len(found) // 2] == pytest.approx(1500, rel=0.15)

            # Both partitions get a record at a time, so each has half of what is read, once both are written to.
            until(halves, 60, seen=log.read_text)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=limit(30)) as answer:
            figures = answer.read().decode()
        assert re.search(r'bellwether_sampler_rounds_total{[^}]*result="complete"[^}]*} [1-9]', figures)
        slow = noted("sampling_failed")  # a machine that hung: not what this is about
        # The cluster behind the policy's addresses goes away, and its API server's word on it changes.
        api.merge(POLICIES, namespace, "main", {"spec": {"kafka": {"bootstrapServers": ["127.0.0.1:1"]}}})
        until(lambda: noted("sampling_failed") == slow + 1, 60, seen=log.read_text)
        api.merge(POLICIES, namespace, "main", {"spec": {"kafka": {"bootstrapServers": kafka.bootstrap.split(",")}}})
        until(lambda: noted("sampling_recovered") == slow + 1, 60, seen=log.read_text)
        # Another store or other days are followed without a restart of the process.
        rebalance = api_objects.rebalance(historyDays=30)
        rebalance["metadata"]["namespace"] = namespace
        api.create(LEADER_REBALANCES, namespace, rebalance)
        until(lambda: log.read_text().count('"event": "policy_served"') == 2, 60, seen=log.read_text)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(limit(60)) == 0, log.read_text()
    assert noted("sampling_failed") == noted("sampling_recovered") == slow + 1, "as it began and as it was over"


def test_a_policy_that_is_not_there_is_named(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bellwether",
        "sample",
        "--policy",
        "absent",
        "-n",
        namespace,
        "--store",
        str(tmp_path),
    ]
    found = ran(command, env={**os.environ, "KUBECONFIG": str(apiserver.kubeconfig)})
    assert found.returncode == 1
    assert "absent" in found.stderr
