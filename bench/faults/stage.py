"""The real parts of one stage: brokers behind a load balancer, operator and probers, each with a shim to be broken by.

In: a ``Layout`` and an API server. Out: parts to break one by one (``faults.breaking``), ways to wait for what is well.
Operator and probers are the real commands, started as processes of their own as anyone would start them; everything
ends with the stage. Called by ``__main__``, which shares one API server between the stages.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.detection import CANARY_TOPIC
from bellwether.core.signals import Reading, SignalType
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError
from bellwether.probes.storage.disk_read import READ_BYTES
from demo.watch import Watch
from evacuation.warm_up import settling, warm_up
from faults.settings import PARTITIONS
from faults.traffic import Trickle
from faults.witness import Witness
from realparts import shims
from realparts.apiserver import ApiServer
from realparts.blackholes import Blackhole
from realparts.detours import Detour
from realparts.kafka import KafkaBroker, KafkaCluster, create_topics
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess
from realparts.toxiproxy import Toxiproxy
from realparts.wrongclock import WrongClock
from testkit.kafka.kafka_site import PATIENT, KafkaSite
from testkit.processes.sites import POLICY, Site
from testkit.values.security_settings import PLAINTEXT
from waiting import until

VANTAGES = ("zone-a", "zone-b", "zone-c")
TOPICS = ("orders", "clicks")
QUICK = {"stabilizationSeconds": 2, "maxStabilizationSeconds": 0, "waves": {"skipUpToLeaders": 1000}}
"""Scenarios follow one another: a broker that is well may lead again at once, and is no flapping one."""
STEADY_SECONDS = 150.0
SEGMENT_MILLISECONDS = 60_000
"""Long enough for a partition of a trickle to fill more than a block: a record of 200 bytes each three seconds."""
TICK = 0.1


class PartDied(RuntimeError):
    """Operator or prober has ended by itself; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a stage is built. ``spec`` and ``detection`` are of the policy: what they do not name is the default.

    ``old_segments``: every partition has a segment that is not written any more, for storage probers to read.
    ``canary``: each vantage also has a canary prober, and its topic exists. ``partitions`` are those of both topics.
    """

    name: str
    brokers: int = 3
    racks: tuple[str, ...] = ()
    secure: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)
    detection: Mapping[str, Any] = field(default_factory=dict)
    old_segments: bool = False
    canary: bool = False
    partitions: int = PARTITIONS


class Stage:
    """Everything that runs. A context manager: up on entry, gone on exit."""

    def __init__(self, layout: Layout, server: ApiServer, logs: Path) -> None:
        self.layout = layout
        self._server = server
        self._logs = logs / layout.name
        self._stack = ExitStack()
        self._ports = HeldPorts()
        self._holes: dict[int, Blackhole] = {}
        self._excused: set[str] = set()
        self.kafka = KafkaCluster(
            layout.brokers,
            racks=layout.racks or None,
            slow_disk=True,
            sasl_ssl=layout.secure,
            external_ssl=layout.secure,
            heap="192m" if layout.partitions <= 1000 else "512m",
            properties={"min.insync.replicas": "2"},
        )
        self.site: Site
        self.watch: Watch
        self.witness: Witness
        self.detours: dict[str, Detour] = {}
        self.clocks: dict[str, WrongClock] = {}
        self.probers: dict[str, ManagedProcess] = {}

    def __enter__(self) -> Stage:
        try:
            self._set()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers' ids."""
        return tuple(self.kafka.brokers)

    @property
    def proxy(self) -> Toxiproxy:
        """The load balancer; its ways are named by ``KafkaBroker.proxy_name``."""
        assert self.kafka.proxy is not None
        return self.kafka.proxy

    def name_of(self, broker: int) -> str:
        """The load balancer's name for the way to a broker."""
        return self.kafka.broker(broker).proxy_name

    def external_port(self, broker: int) -> int:
        """The port that clients outside get."""
        return int(self.kafka.broker(broker).external.rpartition(":")[2])

    def swallow(self, broker: int) -> None:
        """Drop every packet of a connection to a broker's external address; ``release`` undoes it."""
        self.proxy.cut(self.name_of(broker))
        self._holes[broker] = Blackhole(self.external_port(broker))
        self._holes[broker].open()

    def release(self, broker: int) -> None:
        """Make the way to a broker whole again, whatever was done to it."""
        if (hole := self._holes.pop(broker, None)) is not None:
            hole.close()
        self.proxy.mend(self.name_of(broker))

    def closed_port(self) -> int:
        """A port that refuses: it is held, and nothing listens on it."""
        return self._ports.take()

    def storage_prober(self, broker: int) -> ManagedProcess:
        """The storage prober next to a broker."""
        return self.probers[f"storage-{broker}"]

    def reachability_probers(self) -> list[ManagedProcess]:
        """Those of the vantages."""
        return [self.probers[f"reachability-{vantage}"] for vantage in VANTAGES]

    def excuse(self, process: ManagedProcess, *, excused: bool = True) -> None:
        """A process that a scenario ends may be gone, until it is not excused any more."""
        (self._excused.add if excused else self._excused.discard)(process.name)

    def check(self) -> None:
        """Raise PartDied when the operator or a prober has ended."""
        for process in self.site.processes:
            if not process.alive and process.name not in self._excused:
                raise PartDied(f"{process.name} has ended by itself; the end of {process.log}:\n{process.tail(15)}")

    def until(self, reached: Callable[[], bool], limit: float, wish: str) -> None:
        """Wait. Raises TooLate after ``limit`` seconds, PartDied when a part ends meanwhile."""

        def now() -> bool:
            self.check()
            return reached()

        until(now, limit, wish, every=TICK, seen=self._standing)

    def rest(self, seconds: float) -> None:
        """Let time pass, while every part is watched."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            time.sleep(TICK)

    def settle(self, limit: float = STEADY_SECONDS) -> None:
        """Wait until every broker is Healthy and leads what it should, with full ISRs, as before every scenario.

        Leaders that Kafka moved when a broker went are asked back as a person would: Kafka itself takes minutes.
        """
        asked = 0.0

        def well() -> bool:
            nonlocal asked
            if not self._all_called_healthy() or not self.watch.ask(lambda seen: _whole(seen.view)):
                return False
            astray = self.watch.ask(lambda seen: [n for n, p in seen.view.items() if p.leader != p.replicas[0]])
            if astray and time.monotonic() - asked > 3:
                asked = time.monotonic()
                self._elect(astray)
            return not astray

        self.until(well, limit, "every broker is Healthy and leads what it should")

    def _all_called_healthy(self) -> bool:
        words = self.witness.words
        ready = all(b in words.brokers and not words.brokers[b].demoted for b in self.brokers)
        return ready and words.all_healthy(self.brokers) and not self.witness.problem

    def _elect(self, names: list[tuple[str, int]]) -> None:
        try:
            connection = Connection(tuple(self.kafka.bootstrap.split(",")), PLAINTEXT)
            KafkaMover(BrokerPool(connection, PATIENT)).elect([TopicPartition(*name) for name in names])
        except BellwetherError:
            return  # asked again soon

    def _standing(self) -> str:
        words = self.witness.words
        said = ", ".join(
            f"{b}: {w.verdict} ({w.reason}){' demoted' if w.demoted else ''}" for b, w in words.brokers.items()
        )
        leaders = self.watch.ask(lambda seen: seen.leaders())
        thin = self.watch.ask(lambda seen: sum(len(p.isr) < len(p.replicas) for p in seen.view.values()))
        problem = f"; {self.witness.problem}" if self.witness.problem else ""
        if not words.brokers:
            problem += f"; the end of the operator's log:\n{self.site.processes[0].tail(10)}"
        return f"{said}; leaders {leaders}; {thin} partitions with a thin ISR; {words.ready}{problem}"

    def _set(self) -> None:
        self._stack.callback(self._ports.release)
        self.kafka.start()
        self._stack.callback(self.kafka.stop)
        self.site = Site(self._server, self.kafka, self._logs)
        self._stack.callback(self._end_processes)
        rolled = {"segment.ms": str(SEGMENT_MILLISECONDS)} if self.layout.old_segments else {}
        partitions = dict.fromkeys(TOPICS, self.layout.partitions // len(TOPICS))
        self.site.topics(partitions, configs={"min.insync.replicas": "2", **rolled})
        if self.layout.canary:
            alone = {CANARY_TOPIC: [[broker] for broker in self.brokers]}
            create_topics(self.kafka.bootstrap, {CANARY_TOPIC: len(self.brokers)}, assignments=alone)
        self.site.policy(**self._spec())
        if self.layout.partitions > PARTITIONS:
            site = KafkaSite(self.kafka)
            warm_up(site, TOPICS, settling(site))
        self.site.operator()
        for vantage in VANTAGES:
            self.detours[vantage] = Detour(self._logs / f"detour-{vantage}")
            self._prober("reachability", vantage, ["--vantage", vantage], self.detours[vantage].environment())
            if self.layout.canary:
                self._prober("canary", vantage, ["--vantage", vantage], self.detours[vantage].environment())
        for broker in self.kafka.brokers.values():
            beside = ["--directory", str(broker.log_dir)]
            self._prober("storage", str(broker.id), beside, self.kafka.slow_disk(broker.id).environment())
        self.watch = self._stack.enter_context(Watch({b.id: b.internal for b in self.kafka.brokers.values()}))
        self.witness = self._stack.enter_context(Witness(self.site, self.watch))
        self._stack.enter_context(Trickle(self.kafka.bootstrap, TOPICS))
        if self.layout.canary:
            self.until(self._has_canaries, STEADY_SECONDS, "every canary passes")
        if self.layout.old_segments:
            self.until(self._has_old_segments, STEADY_SECONDS, "every broker has an old segment")

    def _has_canaries(self) -> bool:
        """Whether every vantage's canary reports every broker as passing."""

        def passing(broker: int) -> set[str]:
            said = self.site.health(broker).get("signals") or ()
            return {s["source"] for s in said if s["type"] == SignalType.CANARY and s["reading"] == Reading.PASSING}

        return all(passing(broker) == set(VANTAGES) for broker in self.brokers)

    def _has_old_segments(self) -> bool:
        """Whether each broker's disk holds a segment that can be read: larger than a block and not the active one."""

        def old(broker: KafkaBroker) -> bool:
            partitions = (sorted(one.glob("*.log"))[:-1] for one in broker.log_dir.glob("orders-*"))
            return any(segment.stat().st_size >= READ_BYTES for found in partitions for segment in found)

        return all(old(broker) for broker in self.kafka.brokers.values())

    def _spec(self) -> dict[str, Any]:
        detection = {"externalReachability": {"vantages": list(VANTAGES)}, **self.layout.detection}
        secure = {"kafka": self._secured()} if self.layout.secure else {}
        return {"detection": detection, "promotion": QUICK, **secure, **self.layout.spec}

    def _secured(self) -> dict[str, Any]:
        """How to connect with TLS and SASL, inside as well as outside: one configuration is for both."""
        known = self.kafka.security
        assert known is not None
        secret = {"name": "kafka", "namespace": self.site.namespace}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": secret,
            "stringData": {"ca.crt": known.ca.read_text(), "password": known.password},
        }
        self._server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        return {
            "bootstrapServers": known.bootstrap.split(","),
            "tls": {"caSecretName": "kafka"},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": known.username,
                "passwordSecretName": "kafka",
            },
        }

    def _prober(self, verb: str, name: str, arguments: list[str], *environments: Mapping[str, str]) -> None:
        name = f"{verb}-{name}"
        self.clocks[name] = WrongClock(self._logs / f"clock-{name}")
        command = [sys.executable, "-m", "bellwether", "probe", verb, "--policy", POLICY, "-n", self.site.namespace]
        environment = shims.together(self.clocks[name].environment(), *environments)
        self.probers[name] = self.site.start(name, [*command, *arguments], environment)

    def _end_processes(self) -> None:
        for hole in self._holes.values():
            hole.close()
        for process in self.site.processes:
            process.ask_to_stop()
        for process in self.site.processes:
            process.stop(5)


def _whole(view: Mapping[Any, Any]) -> bool:
    return all(p.leader is not None and set(p.isr) == set(p.replicas) for p in view.values())
