"""The real parts: three brokers, a controller of their own, clients of each kind, and all of Bellwether if wanted.

In: a ``Layout``. Out: a stage on which a fault is played and a cure is taken by hand, or left to the operator. With an
operator every broker has a storage prober, every vantage a reachability prober, and, if wanted, every broker a
quarantine agent: the real commands, as processes of their own. Called by ``__main__``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError
from cures.clients import Clients
from cures.faults import Fault
from cures.throttled_disk import ThrottledDisk
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaBroker, KafkaCluster, create_topics
from realparts.slowdisk import SlowDisk
from realparts.toxiproxy import Toxiproxy
from testkit.kafka.kafka_site import PATIENT
from testkit.processes.sites import POLICY, Site, demoted
from testkit.values.security_settings import PLAINTEXT
from waiting import until

TOPICS = ("orders", "clicks")
SICK = 1
VANTAGES = ("zone-a", "zone-b", "zone-c")
STEADY_SECONDS = 180.0
TICK = 0.2
AGENT, NO_AGENT = "default, with agent", "default, without agent"


@dataclass(frozen=True, slots=True)
class Load:
    """Partitions and records a second, of both topics together."""

    name: str
    partitions: int
    per_second: float


LOADS = {load.name: load for load in (Load("light", 60, 60.0), Load("heavy", 1000, 600.0))}


@dataclass(frozen=True, slots=True)
class Layout:
    """What a stage is built of. ``operator`` is ``AGENT``, ``NO_AGENT``, or empty for none."""

    load: Load
    fetchers: int = 1
    operator: str = ""
    payload: int = 200
    device: bool = False
    directories: int = 1
    pair: bool = False


class Stage:
    """Everything that runs. A context manager: up on entry, gone on exit."""

    def __init__(self, layout: Layout, server: ApiServer | None, logs: Path) -> None:
        self.layout, self._server, self._logs = layout, server, logs
        self._stack = ExitStack()
        self.undo = ExitStack()
        """What ends with the fault."""
        self.fault: Fault
        self.every_tick: Callable[[], object] | None = None
        self.site: Site | None = None

    def __enter__(self) -> Stage:
        try:
            self._set()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.undo.close()
        self._stack.close()

    @property
    def sick(self) -> KafkaBroker:
        """The broker that faults hit."""
        return self.kafka.broker(SICK)

    @property
    def slow_disk(self) -> SlowDisk:
        """The shim beneath its first log directory."""
        return self.kafka.slow_disk(SICK)

    @property
    def proxy(self) -> Toxiproxy:
        """The load balancer."""
        assert self.kafka.proxy is not None
        return self.kafka.proxy

    def partitions(self) -> dict[TopicPartition, Partition]:
        """As the healthy brokers show them."""
        return {p.name: p for p in self._reader.partitions(TOPICS)}

    @property
    def led(self) -> list[TopicPartition]:
        """What the sick broker leads by the order of each partition."""
        return [name for name, order in self.home.items() if order[0] == SICK]

    def out(self) -> tuple[bool, bool]:
        """Whether the sick broker leads nothing, and whether it is in no ISR."""
        now = self.partitions().values()
        return not any(p.leader == SICK for p in now), not any(SICK in p.isr for p in now)

    def rest(self, seconds: float, watch: Callable[[], object] | None = None) -> None:
        """Let time pass; what must be kept alive is, and ``watch`` is called each tick."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            for act in (self.every_tick, watch):
                if act is not None:
                    act()
            time.sleep(max(0.0, min(TICK - (time.monotonic() - now), end - time.monotonic())))

    def until(self, reached: Callable[[], object], wish: str) -> float:
        """Wait; the seconds that it took. Raises TooLate."""
        began = time.monotonic()
        until(reached, STEADY_SECONDS, wish, every=TICK, seen=self._standing)
        return time.monotonic() - began

    def settle(self) -> float:
        """Wait until every replica is in sync, in its own order and led by the first one; the seconds that it took.

        Leaders that Kafka moved when a broker went are asked back, which Kafka itself does within five minutes.
        """
        asked = 0.0

        def well() -> bool:
            nonlocal asked
            self.sick.start_if_ended()  # as a kubelet would, once it is released
            if self.site is not None and not all(self._called_healthy(b) for b in self.kafka.brokers):
                return False
            now = self.partitions()
            if any(set(p.isr) != set(p.replicas) or p.replicas != self.home.get(n, ()) for n, p in now.items()):
                return False
            astray = [n for n, p in now.items() if p.leader != p.replicas[0]]
            if astray and time.monotonic() - asked > 3:
                asked = time.monotonic()
                self._elect(astray)
            return not astray

        return self.until(well, "every broker is healthy and leads what it should")

    def _elect(self, names: list[TopicPartition]) -> None:
        try:
            KafkaMover(BrokerPool(Connection(tuple(self.kafka.bootstrap.split(",")), PLAINTEXT), PATIENT)).elect(names)
        except BellwetherError:
            return  # asked again soon

    def _called_healthy(self, broker: int) -> bool:
        assert self.site is not None
        return self.site.verdict(broker)[0] == "Healthy" and not demoted(self.site.health(broker))

    def _standing(self) -> str:
        said = self.site.logs() if self.site is not None else ""
        thin = [str(n) for n, p in self.partitions().items() if set(p.isr) != set(p.replicas)]
        return f"{len(thin)} partitions with a thin ISR\n{said}"

    def _set(self) -> None:
        layout = self.layout
        folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="cures-", ignore_cleanup_errors=True))
        )
        if layout.device:
            self.device = self._stack.enter_context(ThrottledDisk(folder / "device"))
            home = self.device.directory / "broker"
            home.mkdir()
            (folder / f"broker-{SICK}").symlink_to(home)
        self.kafka = KafkaCluster(
            3,
            controllers=1,
            directory=folder,
            slow_disk=not layout.device,
            disks=layout.directories,
            heap="192m" if layout.load.partitions <= 100 else "384m",
            pair=(SICK, SICK + 1) if layout.pair else None,
            properties={"min.insync.replicas": "2", "num.replica.fetchers": str(layout.fetchers)},
        )
        self.kafka.start()
        self._stack.callback(self.kafka.stop)
        others = [b.internal for b in self.kafka.brokers.values() if b.id != SICK]
        nodes = BrokerPool(Connection(tuple(others), PLAINTEXT), PATIENT)
        self._reader, self.mover = KafkaReader(nodes), KafkaMover(nodes)
        self._reader.read()
        self._reader.avoid([SICK])
        each = layout.load.partitions // len(TOPICS)
        create_topics(self.kafka.bootstrap, dict.fromkeys(TOPICS, each), replication_factor=3)
        self.until(lambda: len(self.partitions()) == len(TOPICS) * each, "the topics are known")
        self.home = {name: p.replicas for name, p in self.partitions().items()}
        if layout.operator:
            self._operate()
        self.clients = self._stack.enter_context(
            Clients(
                self.kafka.external_bootstrap,
                TOPICS,
                each,
                layout.load.per_second / len(TOPICS),
                payload=layout.payload,
            )
        )
        self.clients.read_old_of([n.partition for n in self.led if n.topic == TOPICS[1]])

    def _operate(self) -> None:
        assert self._server is not None
        self._logs.mkdir(parents=True, exist_ok=True)
        self.site = Site(self._server, self.kafka, self._logs)
        self._stack.callback(self._end_processes)
        agent = self.layout.operator == AGENT
        promotion = {"maxStabilizationSeconds": 0, "waves": {"skipUpToLeaders": 1000}}
        if not self.layout.device:
            # A device of too few bytes a second is fast as soon as its broker is held: there the default counts.
            promotion["stabilizationSeconds"] = 2
        self.site.policy(
            detection={"externalReachability": {"vantages": list(VANTAGES)}},
            promotion=promotion,
            quarantine={"mode": "Enabled" if agent else "Off"},
        )
        self.site.operator()
        beside = ["--policy", POLICY, "-n", self.site.namespace]
        bellwether = [sys.executable, "-m", "bellwether"]
        for vantage in VANTAGES:
            self.site.start(vantage, [*bellwether, "probe", "reachability", *beside, "--vantage", vantage])
        if self.layout.pair:
            self.site.start("replication", [*bellwether, "probe", "replication", *beside])
        for broker in self.kafka.brokers.values():
            disk = {} if self.layout.device else self.kafka.slow_disk(broker.id).environment()
            folders = [part for folder in broker.log_dirs for part in ("--directory", str(folder))]
            self.site.start(f"storage-{broker.id}", [*bellwether, "probe", "storage", *beside, *folders], disk)
            if agent:
                mine = ["--process", broker.pattern, "--lease-namespace", self.site.namespace]
                self.site.start(f"agent-{broker.id}", [*bellwether, "quarantine-agent", *beside, *mine])

    def _end_processes(self) -> None:
        assert self.site is not None
        for process in self.site.processes:
            process.ask_to_stop()
        for process in self.site.processes:
            process.stop(10)
