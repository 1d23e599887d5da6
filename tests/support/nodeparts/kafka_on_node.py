"""The brokers that run on the node, in hand: bring them up, break and repair them, see who leads.

In: a node. Out: faults, and what Kafka itself says. Called by the tests on a node.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import ClusterMetadata

from node.kubectl import Kubectl, eventually
from node.places import Places
from nodeparts import kafka_pods
from nodeparts.kafka_pods import BALANCER_API, BROKERS, EXTERNAL, Cluster, Object
from realparts.kafka_topics import admin, create_topics, live_brokers
from realparts.slowdisk import SlowDisk
from realparts.toxiproxy import Toxiproxy
from waiting import done, limit, until

START_SECONDS = 180


class KafkaOnNode:
    """Three brokers in pods, reached through their load balancer as clients outside are."""

    def __init__(self, kubectl: Kubectl, places: Places, cluster: Cluster = kafka_pods.MAIN) -> None:
        self._kubectl = kubectl
        self._places = places
        self.cluster = cluster
        self.balancer = Toxiproxy(Path(os.devnull), elsewhere=(cluster.balancer, BALANCER_API))
        self.external = cluster.external
        self._admin = admin(",".join(self.external))

    def start(self, sidecars: Sequence[Object] = ()) -> None:
        """Bring up volumes, brokers and load balancer, and wait until clients outside see all of them."""
        cluster, volumes = self.cluster, kafka_pods.volumes(self.cluster, self._places.volumes)
        for volume in volumes:
            folder = Path(volume["spec"]["hostPath"]["path"])
            folder.mkdir(parents=True, exist_ok=True)
            os.chown(folder, kafka_pods.USER, kafka_pods.USER)
        self._kubectl.apply([*volumes, *kafka_pods.brokers(cluster, sidecars), *kafka_pods.balancer(cluster)])
        # One that an earlier run left knows ways already; a new one knows none.
        self._kubectl("delete", "pods", "-l", "app=balancer", "-n", cluster.namespace, "--ignore-not-found", "--wait")
        within = ["-n", cluster.namespace, f"--timeout={limit(START_SECONDS):.0f}s"]
        self._kubectl("rollout", "status", "deployment/balancer", *within)
        # The rollout may be that of the pod before, and the way to a new one is laid after it is ready.
        eventually(self.balancer.answers, bool, 60, "the load balancer does not answer")
        for broker in BROKERS:
            self.balancer.add(
                f"broker-{broker}",
                f"{cluster.host(broker)}:{EXTERNAL}",
                f"0.0.0.0:{kafka_pods.external_port(broker)}",
            )
        self._kubectl("rollout", "status", "statefulset/kafka", *within, timeout_seconds=START_SECONDS + 10)
        everyone = frozenset(BROKERS)
        eventually(
            lambda: live_brokers(",".join(self.external), 5),
            lambda seen: seen == everyone,
            120,
            "not all brokers are in",
        )

    def fill(self, topics: int, partitions: int) -> None:
        """Make topics with three replicas, their leaders spread evenly, where they are not there yet."""
        there = set(self._seen().topics)
        names = {f"orders-{number}": partitions for number in range(topics) if f"orders-{number}" not in there}
        create_topics(",".join(self.external), names, configs={"min.insync.replicas": "2"})

    def settle(self) -> None:
        """Elect preferred leaders until all of them lead: brokers that were rolled lead less than they should."""

        def preferred() -> bool:
            # Without a timeout: confluent-kafka 2.16 raises SystemError if one is given.
            self._admin.elect_leaders(ElectionType.PREFERRED).result(limit(30))
            partitions = (p for topic in self._seen().topics.values() for p in topic.partitions.values())
            return all(partition.leader == partition.replicas[0] for partition in partitions)

        until(preferred, 120, "preferred leaders do not lead", every=1, ignoring=(KafkaException, TimeoutError))

    def cut(self, broker: int) -> None:
        """Cut a broker off from clients outside, at the load balancer."""
        self.balancer.cut(f"broker-{broker}")

    def join(self, broker: int) -> None:
        """Undo ``cut``."""
        self.balancer.mend(f"broker-{broker}")

    def slow(self, broker: int, milliseconds: int) -> None:
        """Let every write of a broker's data, with its sync, take so much longer, for the broker and its sidecar."""
        self._disk(broker).set(milliseconds)

    def quicken(self, broker: int) -> None:
        """Undo ``slow``."""
        self._disk(broker).clear()

    def mend(self) -> None:
        """Undo every fault."""
        for broker in BROKERS:
            self.join(broker)
            self.quicken(broker)

    def leaders(self) -> dict[tuple[str, int], int]:
        """Who leads each partition, as clients outside see it from any broker that answers."""
        seen = self._seen()
        return {
            (topic.topic, number): partition.leader
            for topic in seen.topics.values()
            for number, partition in topic.partitions.items()
        }

    def orders(self) -> dict[tuple[str, int], Sequence[int]]:
        """The replica order of each partition."""
        topics = self._seen().topics.values()
        return {(topic.topic, number): one.replicas for topic in topics for number, one in topic.partitions.items()}

    def led_by(self, broker: int) -> int:
        """How many partitions a broker leads."""
        return sum(leader == broker for leader in self.leaders().values())

    def in_isr(self, broker: int) -> bool:
        """Whether a broker follows as it should: it is in the ISR of every partition that it holds."""
        seen = self._seen()
        held = [p for topic in seen.topics.values() for p in topic.partitions.values() if broker in p.replicas]
        return all(broker in partition.isrs for partition in held)

    def _seen(self) -> ClusterMetadata:
        """Metadata, asked for again where it was asked of a broker that was being cut off."""
        return until(lambda: self._admin.list_topics(timeout=limit(10)), 60, so=done, ignoring=(KafkaException,))

    def _disk(self, broker: int) -> SlowDisk:
        pod = self._kubectl.get("pod", f"kafka-{broker}", "--namespace", self.cluster.namespace)
        volume = self._places.kubelet / "pods" / pod["metadata"]["uid"] / "volumes" / "kubernetes.io~empty-dir" / "slow"
        return SlowDisk(self._places.volumes / kafka_pods.volume(self.cluster, "data", broker), volume / "control")
