"""A real KRaft cluster of N brokers on 127.0.0.1, each with an internal and an external listener.

In: how many brokers, and what to put before and beneath them. Out: addresses, processes to freeze and kill, the proxy
and the disks to break. The external listener is advertised at toxiproxy's address, as behind a load balancer. Demo,
tests and benchmarks start it; tests mostly share the session's (fixture ``kafka``).
"""

from __future__ import annotations

import re
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from realparts import jmx_exporter, kafka_jars, kafka_settings, kafka_storage
from realparts.kafka_settings import SECURE_PASSWORD, SECURE_USER, Node
from realparts.kafka_topics import configure_broker, create_topics, live_brokers
from realparts.ports import HeldPorts, accepts
from realparts.processes import ManagedProcess
from realparts.progress import step
from realparts.slowdisk import SlowDisk
from realparts.started import Started
from realparts.tls import Authority
from realparts.toxiproxy import Toxiproxy

__all__ = ["KafkaBroker", "KafkaCluster", "Security", "create_topics"]

START_TIMEOUT_SECONDS = 180.0
FIRST_CONTROLLER_ID = 101


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach the secure listener: SASL_SSL, SCRAM-SHA-512."""

    bootstrap: str
    ca: Path
    username: str
    password: str

    def client_settings(self) -> dict[str, str]:
        """The same, in librdkafka's words."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": self.username,
            "sasl.password": self.password,
            "ssl.ca.location": str(self.ca),
        }


class KafkaBroker:
    """One broker: its addresses and its process."""

    def __init__(self, node: Node, process: ManagedProcess) -> None:
        self.id = node.id
        self.internal = f"127.0.0.1:{node.internal_port}"
        #: What clients outside get, which is the proxy's address if there is one.
        self.external = f"127.0.0.1:{node.external_advertised_port}"
        #: Where the broker itself listens, behind the proxy.
        self.external_listen = f"127.0.0.1:{node.external_port}"
        self.secure = f"127.0.0.1:{node.secure_port}" if node.secure_port else None
        #: Where the JMX exporter serves /metrics, if the cluster was made with metrics.
        self.metrics = f"127.0.0.1:{node.metrics_port}" if node.metrics_port else None
        self.proxy_name = f"broker-{node.id}"
        self.log_dir = node.log_dir
        self.log_dirs = node.log_dirs
        self.rack = node.rack
        self.process = process
        self._internal_port = node.internal_port or 0

    @property
    def pattern(self) -> str:
        """What its command line alone matches, whichever process it runs in: for ``quarantine-agent --process``."""
        return rf"(^|.*/)java\0.*\0kafka\.Kafka\0{re.escape(self.process.command[-1])}\0"

    def start(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Start it and wait until it is unfenced. Raises StartFailed with the log's end."""
        self.process.start()
        self.wait_ready(timeout_seconds)

    def wait_ready(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Wait until it answers and knows itself to be unfenced. Raises StartFailed with the log's end."""
        self.process.wait_ready(self._is_in, timeout_seconds)

    def pause(self) -> None:
        """Freeze it: it keeps its connections and answers nothing; after 9 s the controller fences it."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on. It comes back by itself; ``wait_ready`` waits for that."""
        self.process.resume()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()

    def stop(self) -> None:
        """Shut it down as an operator would: its leaders are moved first."""
        self.process.stop(60)

    def restart(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Shut it down if it runs, start it, and wait until it is unfenced."""
        self.stop()
        self.start(timeout_seconds)

    def start_if_ended(self) -> bool:
        """Start it, as a kubelet would, once its process has ended; whether that is so."""
        if self.process.alive:
            return False
        self.start()
        return True

    def _is_in(self) -> bool:
        return accepts(self._internal_port) and self.id in live_brokers(self.internal)


class KafkaCluster(Started):
    """N brokers, ids from 1 on; see the module. A context manager: started on entry, gone on exit."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        directory: Path | None = None,
        controllers: int = 0,
        racks: Sequence[str] | None = None,
        proxied: bool = True,
        slow_disk: bool = False,
        disks: int = 1,
        sasl_ssl: bool = False,
        external_ssl: bool = False,
        metrics: bool = False,
        heap: str = "256m",
        listener_names: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
        jvm_options: Sequence[str] = (),
        classes: Sequence[Path] = (),
        pair: tuple[int, int] | None = None,
    ) -> None:
        """Lay out a cluster; nothing runs yet.

        ``controllers`` 0 gives the first three brokers (of one or two: the first) the controller's role too; a number
        gives that many nodes of their own (ids 101 on). ``racks`` are dealt to the brokers in turn. Each broker has as
        many log directories as ``disks``; ``slow_disk`` puts a ``SlowDisk`` beneath the first one. ``sasl_ssl`` adds
        the listener SECURE; with ``external_ssl`` EXTERNAL speaks SASL_SSL too, with certificates of its own;
        ``listener_names`` gives both other names. With ``metrics`` each broker serves its own (``jmx_exporter``).
        ``properties`` go to every node's server.properties, ``jvm_options`` and folders of further ``classes`` to every
        JVM; ``features`` get other levels than this version's own. A ``pair`` of brokers reach each other through the
        proxy (``ways_between``). A directory that is given is kept at the end, one that is not is removed.
        """
        if brokers < 1:
            raise ValueError("a cluster needs at least one broker")
        self._temporary = directory is None
        self.directory = (directory or Path(tempfile.mkdtemp(prefix="kafka-"))).resolve()
        self._ports = HeldPorts()
        self._heap = heap
        self._jvm_options = tuple(jvm_options)
        self._classes = tuple(classes)
        self._pair = pair
        self._external = (listener_names or {}).get("EXTERNAL", "EXTERNAL")
        self._sasl_ssl = sasl_ssl
        self._features = dict(features or {})
        self._slow_disks: dict[int, SlowDisk] = {}
        self._processes: dict[int, ManagedProcess] = {}
        self.brokers: dict[int, KafkaBroker] = {}
        self.proxy = Toxiproxy(self.directory / "toxiproxy.log") if proxied else None
        self.cluster_id = ""
        self.security: Security | None = None
        authority = Authority(self.directory / "tls") if sasl_ssl else None
        self._authority = authority
        voting = 0 if controllers else (3 if brokers >= 3 else 1)
        nodes = []
        for number in range(1, brokers + 1):
            external = self._ports.take()
            nodes.append(
                Node(
                    id=number,
                    folder=self.directory / f"broker-{number}",
                    controller_port=self._ports.take() if number <= voting else None,
                    internal_port=self._ports.take(),
                    external_port=external,
                    external_advertised_port=self._ports.take() if proxied else external,
                    secure_port=self._ports.take() if authority else None,
                    replication_port=self._ports.take() if pair else None,
                    metrics_port=self._ports.take() if metrics else None,
                    rack=racks[(number - 1) % len(racks)] if racks else None,
                    key_store=authority.key_store(f"broker-{number}") if authority else None,
                    external_key_store=authority.key_store(_external_name(number))
                    if authority and external_ssl
                    else None,
                    names=dict(listener_names or {}),
                    extra=dict(properties or {}),
                    disks=disks,
                )
            )
        for number in range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers):
            folder = self.directory / f"controller-{number}"
            node = Node(
                id=number,
                folder=folder,
                controller_port=self._ports.take(),
                names=dict(listener_names or {}),
                extra=dict(properties or {}),
                disks=disks,
            )
            nodes.append(node)
        self._nodes = nodes
        if slow_disk:
            for node in self._broker_nodes:
                self._slow_disks[node.id] = SlowDisk(node.log_dir, node.folder / "slowdisk.control")
        if authority:
            secure = ",".join(f"127.0.0.1:{node.secure_port}" for node in self._broker_nodes)
            self.security = Security(secure, authority.path, SECURE_USER, SECURE_PASSWORD)

    def certify(self, number: int, *, expired: bool) -> None:
        """Give a broker's external listener a new certificate while it runs: one that has expired, or a good one."""
        if self._authority is None:
            raise RuntimeError("the cluster was made without sasl_ssl")
        store = self._authority.key_store(_external_name(number), expired=expired)
        configure_broker(self.bootstrap, number, {kafka_settings.key_store_setting(self._external.lower()): str(store)})

    @property
    def bootstrap(self) -> str:
        """The internal listeners of all the brokers."""
        return ",".join(broker.internal for broker in self.brokers.values())

    @property
    def external_bootstrap(self) -> str:
        """The external listeners of all the brokers, as advertised: through the proxy, if there is one."""
        return ",".join(broker.external for broker in self.brokers.values())

    def broker(self, number: int) -> KafkaBroker:
        """The broker of that id."""
        return self.brokers[number]

    @property
    def ways_between(self) -> tuple[str, ...]:
        """Names of the proxy's ways between the pair of brokers, to be cut."""
        return tuple(f"broker-{one}-to-{other}" for one, other, _ in self._ways())

    def controller(self, number: int) -> ManagedProcess:
        """The process of a controller that is no broker (ids 101 on)."""
        return self._processes[number]

    def slow_disk(self, number: int) -> SlowDisk:
        """The disk beneath that broker's log directory. Raises KeyError unless the cluster was made with slow_disk."""
        return self._slow_disks[number]

    def start(self) -> None:
        """Format and start everything side by side, and wait until all the brokers see each other."""
        kafka_jars.folder()  # not part of the time below
        with step(f"starting Kafka {kafka_jars.VERSION}, {len(self._broker_nodes)} brokers"):
            try:
                self._start()
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End every process: brokers are not shut down politely, as no one will read their data again."""
        for process in self._processes.values():
            process.resume()
            process.kill()
        if self.proxy:
            self.proxy.stop()
        self._ports.release()
        if self._temporary:
            with ThreadPoolExecutor() as pool:  # thousands of small files each
                list(pool.map(_remove, (node.folder for node in self._nodes)))
            _remove(self.directory)

    def mend(self) -> None:
        """Undo every fault: resume and restart brokers, repair the proxy and the disks, wait until all are in."""
        for disk in self._slow_disks.values():
            disk.clear()
        if self.proxy:
            for broker in self.brokers.values():
                self.proxy.mend(broker.proxy_name)
        for process in self._processes.values():
            process.resume()
            process.start()
        self._wait_for_all()

    def processes(self) -> list[ManagedProcess]:
        """Everything that runs for this cluster, the proxy included; ``detach`` each to leave the cluster running."""
        proxy = [self.proxy.process] if self.proxy and self.proxy.process else []
        return [*self._processes.values(), *proxy]

    @property
    def _broker_nodes(self) -> list[Node]:
        return [node for node in self._nodes if node.is_broker]

    def _start(self) -> None:
        voters = [node for node in self._nodes if node.controller_port is not None]
        for node in self._nodes:
            node.folder.mkdir(parents=True, exist_ok=True)
            settings = kafka_settings.properties(node, voters, len(self._broker_nodes))
            (node.folder / "server.properties").write_text(kafka_settings.render(settings))
        if self.proxy:
            self.proxy.start()
        if self._pair:
            self._lead_between()
        self.cluster_id = kafka_storage.format_nodes(self._nodes, scram=self._sasl_ssl, features=self._features)
        for node in self._nodes:
            self._processes[node.id] = process = self._process(node)
            process.start()
            if node.is_broker:
                self.brokers[node.id] = broker = KafkaBroker(node, process)
                if self.proxy:
                    self.proxy.add(broker.proxy_name, broker.external_listen, broker.external)
        self._wait_for_all()

    def _ways(self) -> list[tuple[int, int, str]]:
        """Each way between the brokers of the pair: who goes it, to whom, and the address by which it begins."""
        if self._pair is None:
            return []
        one, other = self._pair
        return [(a, b, f"127.0.{a}.{b}") for a, b in ((one, other), (other, one))]

    def _lead_between(self) -> None:
        """Every broker resolves the others' names by a file of its own; the pair's names lead to the proxy."""
        assert self.proxy is not None
        ports = {node.id: node.replication_port for node in self._broker_nodes}
        for one, other, address in self._ways():
            self.proxy.add(f"broker-{one}-to-{other}", f"127.0.0.1:{ports[other]}", f"{address}:{ports[other]}")
        proxied = {(one, other): address for one, other, address in self._ways()}
        for node in self._broker_nodes:
            names = {other.host_name: proxied.get((node.id, other.id), "127.0.0.1") for other in self._broker_nodes}
            lines = [f"127.0.0.1 {name}" for name in ("localhost", socket.gethostname())]
            lines += [f"{address} {name}" for name, address in names.items()]
            _hosts_file(node).write_text("\n".join(lines) + "\n")

    def _process(self, node: Node) -> ManagedProcess:
        disk = self._slow_disks.get(node.id)
        by_name = (f"-Djdk.net.hosts.file={_hosts_file(node)}",) if node.replication_port else ()
        metrics = jmx_exporter.options(node.folder, node.metrics_port) if node.metrics_port else ()
        return ManagedProcess(
            node.folder.name,
            kafka_jars.command(
                "kafka.Kafka",
                [node.folder / "server.properties"],
                heap=self._heap,
                options=(*self._jvm_options, *metrics, *by_name),
                classes=self._classes,
            ),
            log=node.folder / "server.log",
            environment=disk.environment() if disk else None,
        )

    def _wait_for_all(self) -> None:
        for broker in self.brokers.values():
            broker.wait_ready()
        everyone = frozenset(self.brokers)
        for broker in self.brokers.values():

            def sees_all(address: str = broker.internal) -> bool:
                return live_brokers(address) >= everyone

            broker.process.wait_ready(sees_all, START_TIMEOUT_SECONDS)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _hosts_file(node: Node) -> Path:
    return node.folder / "hosts"


def _external_name(number: int) -> str:
    return f"broker-{number}-external"
