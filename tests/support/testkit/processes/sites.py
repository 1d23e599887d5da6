"""A namespace of its own on a real API, topics of its own on real brokers, and operators as processes.

In: the shared API server and brokers. Out: a ``Site`` that tests act on as people would (policies, overrides) and read
as people would (status, Kafka's metadata). Each site has its own Lease namespace, so sites follow one another freely;
``close`` ends the processes and puts every replica order back that the site found.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.installation_marks import InstallationMarks
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    CONFIG_MAPS,
    LEADER_REBALANCES,
    POLICIES,
    KubernetesClient,
    Object,
    connect,
)
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.adapters.undo_record_codec import import_record
from bellwether.cli.main import main
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.core.model.undo_record import UndoRecord
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster, create_topics
from realparts.kafka_topics import delete_topics
from realparts.ports import LOOPBACK, HeldPorts
from realparts.processes import ManagedProcess
from testkit.kafka.kafka_site import PATIENT, KafkaSite
from testkit.kubernetes import api_objects
from testkit.processes.fake_prober import FakeProber
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

POLL_SECONDS = 0.1
POLICY = "main"


class Site:
    """See the module. Methods that wait return the seconds that it took, or raise TooLate."""

    def __init__(self, server: ApiServer, kafka: KafkaCluster, directory: Path, namespace: str = "") -> None:
        self.server = server
        self.kafka = kafka
        self.directory = directory
        self.api: KubernetesClient = connect(server.kubeconfig)
        self.namespace = server.create_namespace(namespace or f"site-{uuid.uuid4().hex[:8]}")
        self.topic = "orders" if namespace else f"site-{uuid.uuid4().hex[:8]}"
        self._topics: list[str] = []
        self._ports = HeldPorts()
        nodes = BrokerPool(Connection(tuple(kafka.bootstrap.split(",")), PLAINTEXT), PATIENT)
        self._reader, self.marks = KafkaReader(nodes), InstallationMarks(nodes, lambda: "", SystemClock())
        self._found = self._orders_of_all()
        self.processes: list[ManagedProcess] = []
        self._voices: list[FakeProber] = []
        self.health_port = 0

    # Processes

    def operator(self, *arguments: str, program: str = "bellwether", **environment: str) -> ManagedProcess:
        """Start ``bellwether operator`` for this namespace, or another ``program`` (a module) around it."""
        command = [sys.executable, "-m", program, "operator", "-n", self.namespace, "--log-format", "json"]
        if "--metrics-port" not in arguments:
            arguments = (*arguments, "--metrics-port", "0")
        if "--health-port" not in arguments:
            arguments = (*arguments, "--health-port", "0")
        return self.start("operator", [*command, "--lease-namespace", self.namespace, *arguments], environment)

    def prober(self, vantage: str) -> ManagedProcess:
        """Start ``bellwether probe reachability`` at a vantage."""
        arguments = ["probe", "reachability", "--policy", POLICY, "-n", self.namespace, "--vantage", vantage]
        return self.start(f"prober-{vantage}", [sys.executable, "-m", "bellwether", *arguments])

    def start(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """Start any process with this API's kubeconfig; it ends with the site."""
        log = self.directory / f"{name}-{len(self.processes)}.log"
        variables = {"KUBECONFIG": str(self.server.kubeconfig), **LOOPBACK, **(environment or {})}
        process = ManagedProcess(name, command, log=log, environment=variables)
        process.start()
        self.processes.append(process)
        return process

    def voice(self, vantage: str) -> FakeProber:
        """A vantage that says what a test tells it to say, in the manner of a prober."""
        voice = FakeProber(connect(self.server.kubeconfig), self.namespace, POLICY, vantage)
        self._voices.append(voice)
        return voice

    def silence(self) -> None:
        """All voices go silent."""
        while self._voices:
            self._voices.pop().stop()

    def free_port(self) -> int:
        """A port for a server of the test's own."""
        return self._ports.take()

    # What people write

    def topics(self, partitions: Mapping[str, int] | None = None, **how: Any) -> None:
        """Create topics that end with the site; by default one of 40 partitions, named ``topic``."""
        wanted = dict(partitions or {self.topic: 40})
        create_topics(self.kafka.bootstrap, wanted, **how)
        self._topics += list(wanted)
        # Whom we ask may hear of them later than whom the client asked.
        self.until(lambda: self._whole(wanted), 30, "the topics are known", self.partitions)

    def adopt(self, *topics: str) -> None:
        """Count topics of another client as the site's own: they end with it."""
        self._topics += topics

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until Kafka has done so."""
        delete_topics(self.kafka.bootstrap, [topic])
        self.until(lambda: not self._reader.partitions([topic]), 30, f"{topic} is gone")

    def policy(self, name: str = POLICY, *, kafka: Object | None = None, **spec: Any) -> Object:
        """Apply a policy; by default one that enforces, on the shared brokers, and gives leaders back soon.

        ``rebalance`` is the spec of a LeaderRebalance of it.
        """
        rebalance = spec.pop("rebalance", None)
        if rebalance is not None:
            self._apply_rebalance(name, rebalance)
        body = {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "mode": "Enforce",
                "kafka": kafka or {"bootstrapServers": self.kafka.bootstrap.split(",")},
                "promotion": {"stabilizationSeconds": 2, "waves": {"skipUpToLeaders": 1000}},
                **spec,
            },
        }
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        return self.policy_now(name)

    def _apply_rebalance(self, policy: str, spec: Object) -> None:
        body = api_objects.rebalance(policy=policy, **spec)
        body["metadata"]["namespace"] = self.namespace
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def change(self, name: str = POLICY, **spec: Any) -> None:
        """Change some fields of a policy's spec, or (``rebalance``) its LeaderRebalance, which None deletes."""
        if "rebalance" in spec:
            rebalance = spec.pop("rebalance")
            if rebalance is None:
                self.api.delete(LEADER_REBALANCES, self.namespace, api_objects.LOADS)
            elif self.api.find(LEADER_REBALANCES, self.namespace, api_objects.LOADS) is None:
                self._apply_rebalance(name, rebalance)
            else:
                self.api.merge(LEADER_REBALANCES, self.namespace, api_objects.LOADS, {"spec": rebalance})
        if spec:
            self.api.merge(POLICIES, self.namespace, name, {"spec": spec})

    def demote(self, broker: int, reason: str = "a test asks for it") -> None:
        """Ask for a demotion, as ``kubectl patch`` does."""
        override = {"state": "Demoted", "reason": reason}
        self.kubectl("patch", "bh", f"{POLICY}-{broker}", "--type=merge", "-p", _spec(override=override))

    def lift(self, broker: int) -> None:
        """Take the override away."""
        self.kubectl("patch", "bh", f"{POLICY}-{broker}", "--type=merge", "-p", _spec(override=None))

    def delete(self, *arguments: str, name: str = POLICY) -> None:
        """Delete a policy, without waiting for its end."""
        self.kubectl("delete", "lp", name, "--wait=false", *arguments)

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the site's namespace."""
        return self.server.kubectl("-n", self.namespace, *arguments)

    def run(self, *arguments: str, exits: int = 0) -> Result:
        """Run ``bellwether`` in the site's namespace, in this process; it must end with that status."""
        environment = {"KUBECONFIG": str(self.server.kubeconfig)}
        found = CliRunner().invoke(main, [*arguments, "-n", self.namespace], env=environment)
        assert found.exit_code == exits, found.output
        return found

    # What people read

    def policy_now(self, name: str = POLICY) -> Object:
        """The policy as it is."""
        return self.api.get(POLICIES, self.namespace, name)

    def baselines(self, record: UndoRecord | None) -> dict[TopicPartition, tuple[int, ...]]:
        """What a record keeps of the site's topics."""
        entries = {} if record is None else record.entries
        return {TopicPartition(e.topic, k.partition): e.baseline for k, e in entries.items() if e.topic in self._topics}

    def gone(self, name: str = POLICY) -> bool:
        """Whether the policy's object is gone."""
        return self.api.find(POLICIES, self.namespace, name) is None

    def status(self, name: str = POLICY) -> Object:
        """The policy's status; empty before there is one."""
        return dict(self.policy_now(name).get("status") or {})

    def rebalance(self) -> Object:
        """The status of the LeaderRebalance; empty before there is one."""
        found = self.api.find(LEADER_REBALANCES, self.namespace, api_objects.LOADS)
        return dict((found or {}).get("status") or {})

    def ready(self, name: str = POLICY) -> tuple[str, str]:
        """Reason and message of the policy's condition Ready; empty before there is one."""
        found = condition(self.status(name), "Ready")
        return str(found.get("reason", "")), str(found.get("message", ""))

    def health(self, broker: int, name: str = POLICY) -> Object:
        """The status of one broker's BrokerHealth; empty before there is one."""
        found = self.api.find(BROKER_HEALTHS, self.namespace, object_names.broker_health(name, broker))
        return dict((found or {}).get("status") or {})

    def verdict(self, broker: int) -> tuple[str, str]:
        """State and reason of a broker."""
        found = self.health(broker).get("verdict") or {}
        return str(found.get("state", "")), str(found.get("reason", ""))

    def record(self, name: str = POLICY) -> UndoRecord | None:
        """The policy's undo record as it is stored."""
        return ConfigMapRecords(self.api, self.namespace, name).read()

    def exports(self) -> list[UndoRecord]:
        """The undo records that were exported, read back."""
        found = self.api.list(CONFIG_MAPS, self.namespace)
        texts = [
            (m["metadata"]["name"], m["data"]["record.json"]) for m in found if "-export-" in m["metadata"]["name"]
        ]
        return [import_record(text.encode(), name) for name, text in texts]

    def versions(self) -> dict[str, str]:
        """The resourceVersion of everything in the namespace but Leases, by kind and name."""
        path = r'{range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}'
        lines = self.kubectl("get", "lp,bh,cm,secrets,events", "-o", f"jsonpath={path}").split()
        return dict(line.split("=", 1) for line in lines)

    def scrape(self, port: int) -> str:
        """What an operator serves for Prometheus."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=limit(10)) as answer:
            return str(answer.read().decode())

    # What Kafka says

    def partitions(self, *topics: str) -> dict[TopicPartition, Partition]:
        """The site's partitions, or those of some topics."""
        return {p.name: p for p in self._reader.partitions(topics or self._topics)}

    def orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica order of each of the site's partitions."""
        return {name: p.replicas for name, p in self.partitions().items()}

    def led_by(self, broker: int) -> int:
        """How many of the site's partitions a broker leads."""
        return sum(p.leader == broker for p in self.partitions().values())

    def displaced(self, broker: int, baselines: Mapping[TopicPartition, tuple[int, ...]]) -> bool:
        """Whether a broker leads none of these partitions and is last in each, the replica sets being as before."""
        now = self.partitions()
        return all(
            name in now
            and now[name].leader not in (broker, None)
            and sorted(now[name].replicas) == sorted(order)
            and (broker not in order or now[name].replicas[-1] == broker)
            for name, order in baselines.items()
        )

    def restored(self, baselines: Mapping[TopicPartition, tuple[int, ...]]) -> bool:
        """Whether each of these partitions has its baseline again, and the leader that is first in it."""
        now = self.partitions()
        return baselines.keys() <= now.keys() and all(
            now[name].replicas == order and now[name].leader == order[0] for name, order in baselines.items()
        )

    # Waiting

    def until(
        self, wanted: Callable[[], object], seconds: float, what: str, shown: Callable[[], object] = str
    ) -> float:
        """Wait until ``wanted``; how long it took, in seconds. ``shown`` tells what was there instead.

        While a request gets no answer, it is not so yet.
        """
        began = time.monotonic()
        seen = lambda: f"{shown()}\n{self.logs()}"  # noqa: E731 - asked at the end alone
        until(wanted, seconds, what, every=POLL_SECONDS, seen=seen, ignoring=(Transient, OSError))
        return time.monotonic() - began

    def until_reported(self, name: str = POLICY, seconds: float = 60) -> float:
        """Wait until the policy's first turn was reported, its brokers with it."""
        return self.until(lambda: self.settled(name), seconds, f"policy {name} is settled", lambda: self.ready(name))

    def settled(self, name: str = POLICY) -> bool:
        """Whether the last reconcile of the policy succeeded and left no leader to move; or it may not move any."""
        status = self.status(name)
        connected, settled = condition(status, "Connected"), condition(status, "Settled")
        return connected.get("status") == "True" and (
            settled.get("status") == "True" or status.get("mode") in ("Observe", "Suspended")
        )

    def until_demoted(self, broker: int, baselines: Mapping[TopicPartition, tuple[int, ...]]) -> float:
        """Wait until a broker leads nothing and is last, and is said to be demoted."""
        took = self.until(lambda: self.displaced(broker, baselines), 60, f"broker {broker} is displaced", self.orders)
        self.until(
            lambda: demoted(self.health(broker)) and self.health(broker).get("leaders") == 0,
            30,
            f"{broker} is reported",
        )
        return took

    def demote_and_wait(self, broker: int, *reason: str) -> dict[TopicPartition, tuple[int, ...]]:
        """Demote a broker as a person does, until that is done and reported; the orders before."""
        before = self.orders()
        self.demote(broker, *reason)
        self.until_demoted(broker, before)
        return before

    def until_restored(self, baselines: Mapping[TopicPartition, tuple[int, ...]], seconds: float = 60) -> float:
        """Wait until all orders and leaders are as they were."""
        return self.until(lambda: self.restored(baselines), seconds, "every baseline is restored", self.partitions)

    def lift_and_wait(self, broker: int, baselines: Mapping[TopicPartition, tuple[int, ...]], *seconds: float) -> None:
        """Take the override away, until all orders and leaders are as they were."""
        self.lift(broker)
        self.until_restored(baselines, *seconds)

    def tell(self, measured: str) -> None:
        """Say a measured time; pytest shows it with -rA or -s."""
        print(f"[measured] {measured}", file=sys.stderr)

    def logs(self) -> str:
        """The ends of all the processes' logs."""
        return "\n".join(f"--- {p.log.name}\n{p.tail(25)}" for p in self.processes)

    def close(self) -> None:
        """End everything, delete the site's topics and put back whatever order was found otherwise."""
        self.silence()
        for process in self.processes:
            process.resume()
            process.kill()
        self._ports.release()
        self._delete_topics()
        self._put_back()
        for mark in self.marks.places():  # of operators that were killed before their policies were deleted
            self.marks.write(mark, None)

    def clear(self) -> None:
        """Take away what a test has made; the operator, which was started first, serves the next one."""
        self.silence()
        while len(self.processes) > 1:
            self.processes.pop().kill()
        at_once = {"metadata": {"annotations": {"bellwether.dev/abandon": "true"}}}
        for name in [policy["metadata"]["name"] for policy in self.api.list(POLICIES, self.namespace)]:
            self.api.merge(POLICIES, self.namespace, name, at_once)
            self.delete(name=name)
        self.until(lambda: not self.api.list(POLICIES, self.namespace), 60, "every policy is gone", self.logs)
        self.kubectl("delete", "bh,cm,events,leases,pods", "--all")
        self._delete_topics()
        self._topics, self.topic = [], f"site-{uuid.uuid4().hex[:8]}"
        self._put_back()

    def _put_back(self) -> None:
        """Whatever order was found otherwise."""
        now = self._orders_of_all()
        astray = [Reorder(name, order) for name, order in self._found.items() if now.get(name, order) != order]
        if astray:
            mover = KafkaMover(BrokerPool(Connection(tuple(self.kafka.bootstrap.split(",")), PLAINTEXT), PATIENT))
            mover.reorder(astray)
            mover.elect([one.name for one in astray])

    def _delete_topics(self) -> None:
        """Every broker knows of it then: later requests may go to any of them."""
        delete_topics(self.kafka.bootstrap, self._topics)
        if gone := frozenset(self._topics):
            KafkaSite(self.kafka).everywhere(lambda c: gone.isdisjoint(p.topic for p in c.partitions))

    def _whole(self, topics: Mapping[str, int]) -> bool:
        """Whether all partitions of these topics are known, led and in sync, by how many each has."""
        found = self._reader.partitions(topics)
        whole = sum(p.leader is not None and len(p.isr) == len(p.replicas) for p in found)
        return whole == sum(topics.values())

    def _orders_of_all(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {p.name: p.replicas for p in self._reader.read().partitions}


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition by type; empty where there is none."""
    return next((c for c in status.get("conditions", ()) if c.get("type") == kind), {})


def demoted(status: Mapping[str, Any]) -> bool:
    """Whether a BrokerHealth says that its broker is demoted."""
    return condition(status, "Demoted").get("status") == "True"


def _spec(**fields: Any) -> str:
    return json.dumps({"spec": fields})
