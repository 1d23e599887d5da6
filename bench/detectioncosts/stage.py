"""The processes that are measured, and those that they need: API server, brokers, operator, probers.

In: sizes, an API server that runs. Out: a ``Stage`` whose processes are up and whose clusters have settled. Called by
``__main__``.
"""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient, connect
from detectioncosts.manybrokers import Traffic, address
from detectioncosts.measuring import requests
from realparts.apiserver import ApiServer
from realparts.ports import LOOPBACK, HeldPorts
from realparts.processes import ManagedProcess
from sparkplans.costs import cost_of_command
from waiting import until

NAMESPACE = "detection-costs"
LEASES = "leases"


class Stage:
    """Policies, each over a cluster of many brokers, seen from some vantages.

    The first ``probers`` of the vantages really probe, each in one process for all policies; the others are simulated.
    """

    def __init__(
        self,
        server: ApiServer,
        directory: Path,
        *,
        policies: int,
        brokers: int,
        partitions: int,
        vantages: int,
        probers: int,
    ) -> None:
        self._server = server
        self._directory = directory
        self._policies = [f"main-{number}" for number in range(policies)]
        self._brokers = brokers
        self._partitions = partitions
        self._vantages = [f"vantage-{letter}" for letter in "abcdefghijklmnop"[:vantages]]
        self._probers = probers
        self._ports = HeldPorts()
        self._metrics: dict[str, int] = {}
        self._traffic_port = 0
        self._api: KubernetesClient = connect(server.kubeconfig).with_timeout(60)
        self.processes: dict[str, ManagedProcess] = {}

    def start(self) -> None:
        """Start everything; returns when the operator has made an object for every broker."""
        internal, external, self._traffic_port = self._ports.take(), self._ports.take(), self._ports.take()
        self._run(
            "brokers",
            "detectioncosts.manybrokers",
            *("--clusters", len(self._policies), "--count", self._brokers, "--partitions", self._partitions),
            *("--internal-port", internal, "--external-port", external, "--traffic-port", self._traffic_port),
        )
        self._server.create_namespace(NAMESPACE)
        detection = {"externalReachability": {"vantages": self._vantages}}
        for number, policy in enumerate(self._policies):
            first = number * self._brokers + 1
            bootstrap = [f"{address(broker)}:{internal}" for broker in range(first, first + min(3, self._brokers))]
            kafka = {"bootstrapServers": bootstrap}
            body = {
                "apiVersion": POLICIES.api_version,
                "kind": POLICIES.kind,
                "metadata": {"name": policy, "namespace": NAMESPACE},
                "spec": {"mode": "Enforce", "kafka": kafka, "detection": detection},
            }
            self._api.create(POLICIES, NAMESPACE, body)
        where = ("-n", NAMESPACE, "--lease-namespace", NAMESPACE, "--health-port", "0")
        self._measured("operator", "bellwether", "operator", *where)
        self.until(lambda: len(self.healths()) == self._all_brokers, 180, "an object for every broker")
        for vantage in self._vantages[: self._probers]:
            command = ("probe", "reachability", "-n", NAMESPACE, "--vantage", vantage)
            self._measured(f"prober {vantage}", "bellwether", *command)
        size = ("--namespace", NAMESPACE, "--brokers", self._brokers)
        vantages = [word for vantage in self._vantages[self._probers :] for word in ("--vantage", vantage)]
        self._run("stand-ins", "detectioncosts.standins", *size, *vantages, *self._policies)

    @property
    def _all_brokers(self) -> int:
        return len(self._policies) * self._brokers

    def traffic(self) -> Traffic:
        """What the brokers were asked until now."""
        return Traffic.at(self._traffic_port)

    def healths(self) -> list[dict[str, Any]]:
        """Every BrokerHealth."""
        return self._api.list(BROKER_HEALTHS, NAMESPACE)

    def standings(self) -> Mapping[str, int]:
        """Brokers by the operator's verdict, as their objects say."""
        conditions = [{c["type"]: c for c in (one.get("status") or {}).get("conditions", [])} for one in self.healths()]
        return Counter(str(c.get("Healthy", {}).get("status", "(none)")) for c in conditions)

    def readings(self) -> Mapping[str, int]:
        """Entries of the vantages by what they say."""
        entries = [e for one in self.healths() for e in (one.get("status") or {}).get("signals", [])]
        return Counter(f"{e['reading']}/{e['control']}" for e in entries)

    def settle(self, seconds: float, quiet_seconds: float = 10.0) -> None:
        """Wait until every broker is judged well by all vantages and no one has written anything but Leases for long.

        Raises TimeoutError with what is there instead.
        """
        entries = self._all_brokers * len(self._vantages)
        self.until(lambda: self.readings() == {"Passing/Passing": entries}, seconds, "every vantage calling all well")
        self.until(lambda: self.standings() == {"True": self._all_brokers}, seconds, "every broker judged healthy")
        self.quiet(seconds, quiet_seconds)

    def demote(self, broker: int) -> None:
        """Demote a broker of the first policy by an override; returns when its object says so."""
        name = object_names.broker_health(self._policies[0], broker)
        override = {"state": "Demoted", "reason": "benchmark"}
        self._api.merge(BROKER_HEALTHS, NAMESPACE, name, {"spec": {"override": override}})

        def drained() -> bool:
            status = (self._api.find(BROKER_HEALTHS, NAMESPACE, name) or {}).get("status") or {}
            return any(c["type"] == "Demoted" and c["status"] == "True" for c in status.get("conditions", []))

        self.until(drained, 300, "a demoted broker")

    def quiet(self, seconds: float, quiet_seconds: float = 10.0) -> None:
        """Wait until no one has written anything but Leases for so long. Raises TimeoutError with the last writes."""
        last, since = self.written(), time.monotonic()
        end = since + seconds
        while time.monotonic() - since < quiet_seconds:
            if time.monotonic() > end:
                raise TimeoutError(f"writes go on: {last}")
            time.sleep(1)
            now = self.written()
            if now != last:
                last, since = now, time.monotonic()

    def requests(self) -> Counter[tuple[str, str]]:
        """What the API server has answered until now."""
        return requests(self._server.kubectl("get", "--raw", "/metrics"))

    def written(self) -> dict[tuple[str, str], int]:
        """What has been written to the objects of the policy."""
        kinds = (BROKER_HEALTHS.plural, POLICIES.plural)
        return {
            k: n for k, n in self.requests().items() if k[1].startswith(kinds) and k[0] not in ("GET", "LIST", "WATCH")
        }

    def status_seconds(self) -> float:
        """CPU seconds of one ``bellwether status`` of the first policy, the interpreter's start included."""
        command = [sys.executable, "-m", "bellwether", "status", "--kubeconfig", str(self._server.kubeconfig)]
        of = ["-n", NAMESPACE, "--lease-namespace", NAMESPACE, "--policy", self._policies[0]]
        with Path(os.devnull).open("wb") as output:
            return cost_of_command([*command, *of], output).cpu_seconds

    def metrics(self, name: str) -> str:
        """What one of the measured processes says of itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics[name]}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def until(self, wanted: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for something. Raises TooLate with the ends of the logs."""

        def seen() -> str:
            said = "\n".join(f"--- {name}\n{process.tail(8)}" for name, process in self.processes.items())
            return f"{dict(self.readings())}, {dict(self.standings())}\n{said}"

        # Each look reads every BrokerHealth, which is a load of its own.
        until(wanted, seconds, what, every=max(1, self._all_brokers / 200), seen=seen)

    def _measured(self, name: str, *command: object) -> None:
        port = self._metrics[name] = self._ports.take()
        self._run(name, *command, "--metrics-port", port, "--log-format", "json")

    def _run(self, name: str, module: object, *arguments: object) -> None:
        command = [sys.executable, "-m", str(module), *map(str, arguments)]
        log = self._directory / f"{name.replace(' ', '-')}.log"
        environment = {"KUBECONFIG": str(self._server.kubeconfig), **LOOPBACK}
        process = ManagedProcess(name, command, log=log, environment=environment)
        process.start()
        self.processes[name] = process

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            process.kill()
        self._ports.release()
