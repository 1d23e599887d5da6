"""A policy with its BrokerHealths on a real API, and probers as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, KubernetesClient, connect
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from realparts.ports import LOOPBACK
from waiting import until

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster

ROOT = Path(__file__).parents[3]


class Bench:
    """One policy in a namespace of its own, and what probers say about its brokers."""

    def __init__(self, server: ApiServer, bootstrap: str, brokers: list[int], directory: Path) -> None:
        self.server = server
        self.api: KubernetesClient = connect(server.kubeconfig)
        self.namespace = server.create_namespace(f"probes-{uuid.uuid4().hex[:8]}")
        self.directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []
        body = {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {"name": "main", "namespace": self.namespace},
            "spec": {"mode": "Observe", "kafka": {"bootstrapServers": bootstrap.split(",")}},
        }
        made = self.api.create(POLICIES, self.namespace, body)
        BrokerHealths(self.api, SystemClock()).ensure_broker_healths(made, brokers)

    def start(
        self, *arguments: str, environment: dict[str, str] | None = None, policies: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """A prober of the policy, or of those that these options name."""
        which = policies or ("--policy", "main", "-n", self.namespace)
        log = self.directory / f"prober-{len(self.processes)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "bellwether", "probe", *arguments, *which],
                env={**os.environ, "KUBECONFIG": str(self.server.kubeconfig), **LOOPBACK, **(environment or {})},
                stdout=out,
                stderr=out,
            )
        self.processes.append(process)
        return process

    def health(self, broker: int) -> Any:
        return self.api.get(BROKER_HEALTHS, self.namespace, object_names.broker_health("main", broker))

    def entry(self, broker: int, type_: str = "") -> dict[str, Any]:
        """The first signal about a broker, or the first of a type; empty without one."""
        entries = (self.health(broker).get("status") or {}).get("signals") or ()
        return dict(next((e for e in entries if type_ in ("", e["type"])), {}))

    def readings(self, *brokers: int) -> list[tuple[Any, Any]]:
        return [(e.get("reading"), e.get("control")) for e in map(self.entry, brokers)]

    def versions(self, *brokers: int) -> list[str]:
        return [self.health(broker)["metadata"]["resourceVersion"] for broker in brokers]

    def lease(self) -> dict[str, Any]:
        (found,) = self.api.list(LEASES, self.namespace)
        return dict(found["spec"])

    def logs(self) -> str:
        return "\n".join(p.read_text() for p in sorted(self.directory.glob("prober-*.log")))

    def until(self, wanted: Callable[[], bool], seconds: float) -> float:
        """How long it took; fails with the probers' logs when it took longer."""
        began = time.monotonic()
        until(wanted, seconds, every=0.1, seen=self.logs)
        return time.monotonic() - began

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def bench(apiserver: ApiServer, kafka: KafkaCluster, tmp_path: Path) -> Iterator[Bench]:
    apiserver.apply(ROOT / "crds")
    bench = Bench(apiserver, kafka.bootstrap, sorted(kafka.brokers), tmp_path)
    yield bench
    bench.stop()


@pytest.fixture
def dry_bench(apiserver: ApiServer, tmp_path: Path) -> Iterator[Bench]:
    """A bench without brokers, for probers that ask none."""
    apiserver.apply(ROOT / "crds")
    bench = Bench(apiserver, "kafka.invalid:9092", [1, 2, 3], tmp_path)
    yield bench
    bench.stop()
