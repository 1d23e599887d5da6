"""Sets the stage: brokers, load balancer, API server, topics, policy, operator and probers, and ends all of them.

In: ``Settings``. Out: a running ``Stage`` whose parts ``scenario`` breaks and repairs. Operator and probers are the
real commands, started as processes of their own; their logs are in ``Settings.logs``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bellwether.quarantine.hold_watchdog import STOPPED, state_of
from demo.settings import ROOT, Settings
from demo.startup import Startup
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster, create_topics
from realparts.ports import LOOPBACK
from realparts.processes import ManagedProcess
from realparts.toxiproxy import Toxiproxy

# Those of README's commands, so that these work with a demo that is kept.
NAMESPACE = "kafka"
POLICY = "orders"
VANTAGES = ("zone-a", "zone-b")
PROC = Path("/proc")
PROGRAM = Path(sys.executable).parent / "bellwether"


class PartDied(RuntimeError):
    """Something that must run all the time has ended; the message holds the end of its log."""


class Stage:
    """Everything that runs, but for the traffic. A context manager: up on entry, gone on exit."""

    def __init__(self, settings: Settings, startup: Startup) -> None:
        self._settings = settings
        self._startup = startup
        self._stack = ExitStack()
        self._processes: list[ManagedProcess] = []
        self.kafka = KafkaCluster(
            brokers=settings.brokers,
            controllers=1,  # the active controller is never held
            proxied=True,
            slow_disk=True,
            heap="256m",
            # With Kafka's default of one fetcher for each leader, a slow follower falls behind until it leaves the ISR.
            properties={"min.insync.replicas": "2", "num.replica.fetchers": "6"},
        )
        self.api = ApiServer()
        self.metrics_port = free_port()

    def __enter__(self) -> Stage:
        try:
            self._set()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.ask_to_stop()
        for process in self._processes:
            process.stop(10)
        self._stack.close()

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers' ids."""
        return tuple(self.kafka.brokers)

    def cut(self, broker: int) -> None:
        """Cut a broker's external listener at the load balancer: connections close, new ones are refused."""
        self._proxy.cut(self.kafka.broker(broker).proxy_name)

    def join(self, broker: int) -> None:
        """Undo ``cut``."""
        self._proxy.mend(self.kafka.broker(broker).proxy_name)

    def slow(self, broker: int) -> None:
        """Make every write in a broker's log directory slower, or every sync without a write."""
        self.kafka.slow_disk(broker).set(self._settings.delay_milliseconds)

    def quicken(self, broker: int) -> None:
        """Undo ``slow``."""
        self.kafka.slow_disk(broker).clear()

    @property
    def proxy_url(self) -> str:
        """Where the load balancer's own API is."""
        return self._proxy.url

    def pid(self, name: str) -> int:
        """The process id of the operator, a prober or an agent."""
        return next(process.pid for process in self._processes if process.name == name)

    def is_held(self, broker: int) -> bool:
        """Whether a broker's process is stopped, by the kernel's word."""
        return state_of(PROC, self.kafka.broker(broker).process.pid) == STOPPED

    def explain(self, broker: int) -> tuple[str, str]:
        """A command that explains a broker's verdict, and what it prints."""
        arguments = ["explain", str(broker), "--namespace", NAMESPACE]
        environment = {**os.environ, "KUBECONFIG": str(self.api.kubeconfig)}
        command = f"bellwether {' '.join(arguments)}"
        try:
            done = subprocess.run(
                [PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
            )
        except subprocess.TimeoutExpired:
            return command, "(not finished within 60 s: this machine is busy)"
        return command, done.stdout or done.stderr

    def check(self) -> None:
        """Raise PartDied when the operator or a prober has ended."""
        for process in self._processes:
            if not process.alive:
                raise PartDied(f"{process.name} has ended by itself; the end of {process.log}:\n{process.tail(15)}")

    @property
    def _proxy(self) -> Toxiproxy:
        assert self.kafka.proxy is not None
        return self.kafka.proxy

    def _set(self) -> None:
        shutil.rmtree(self._settings.logs, ignore_errors=True)
        with self._startup.kafka():
            self._set_kafka()
        with self._startup.bellwether():
            self._set_bellwether()

    def _set_kafka(self) -> None:
        self._stack.callback(self.kafka.stop)
        self.kafka.start()
        create_topics(
            self.kafka.bootstrap,
            dict.fromkeys(self._settings.topics, self._settings.per_topic),
            configs={"min.insync.replicas": "2"},
        )

    def _set_bellwether(self) -> None:
        self._stack.enter_context(self.api)
        self.api.apply(*sorted((ROOT / "crds").glob("*.yaml")))
        self.api.create_namespace(NAMESPACE)
        self.api.kubectl("apply", "-f", "-", stdin=json.dumps(self._policy()))
        leases = ["--lease-namespace", NAMESPACE]
        ports = ["--metrics-port", str(self.metrics_port), "--health-port", "0"]
        self._run("operator", ["operator", *leases, *ports])
        followed = ["--policy", POLICY, "--namespace", NAMESPACE]
        for vantage in VANTAGES:
            self._run(f"reachability-{vantage}", ["probe", "reachability", *followed, "--vantage", vantage])
        for broker in self.kafka.brokers.values():
            self._run(
                f"storage-{broker.id}",
                ["probe", "storage", *followed, "--directory", str(broker.log_dir)],
                self.kafka.slow_disk(broker.id).environment(),
            )
            agent = ["quarantine-agent", *followed, *leases, "--process", broker.pattern]
            self._run(f"agent-{broker.id}", agent)

    def _policy(self) -> Mapping[str, object]:
        """The policy that the demo applies: everything that is not named here is the default."""
        return {
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "LeadershipPolicy",
            "metadata": {"name": POLICY, "namespace": NAMESPACE},
            "spec": {
                "mode": "Enforce",
                "kafka": {"bootstrapServers": self.kafka.bootstrap.split(",")},
                "detection": {"externalReachability": {"vantages": list(VANTAGES)}},
                # Repeated, the demo's faults are what damping is against.
                "promotion": {
                    "stabilizationSeconds": self._settings.stabilization,
                    # Long enough to see the steps, and short enough to wait for them.
                    "waves": {"pauseSeconds": 2},
                    **({"maxStabilizationSeconds": 0} if self._settings.repeat > 1 else {}),
                },
            },
        }

    def _run(self, name: str, arguments: list[str], environment: Mapping[str, str] | None = None) -> None:
        process = ManagedProcess(
            name,
            [PROGRAM, *arguments],
            log=self._settings.logs / f"{name}.log",
            environment={"KUBECONFIG": str(self.api.kubeconfig), **LOOPBACK, **(environment or {})},
        )
        process.start()
        self._processes.append(process)


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
