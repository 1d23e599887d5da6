"""The real parts: three brokers with disks that can be slow, a controller, an API server, and all of Bellwether.

In: an API server, and how to quarantine. Out: a stage on which plays break a disk or a broker and see what stands.
Operator, storage probers and agents are the real commands, as processes of their own; the agent of each broker is
told how its command line ends, as all brokers run side by side here. Called by ``__main__``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether.quarantine.pause_watchdog import STOPPED, state_of
from quarantines.traffic import Traffic
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from testkit.kafka.kafka_site import PATIENT
from testkit.processes.sites import POLICY, Site, condition, demoted
from waiting import until

TOPIC, PARTITIONS, PER_SECOND = "orders", 12, 60.0
SICK = 1
MILLISECONDS = 80
PROC = Path("/proc")
TICK = 0.1


class Stage:
    """Everything that runs. A context manager: up on entry, gone on exit."""

    def __init__(self, server: ApiServer, logs: Path, quarantine: Mapping[str, Any]) -> None:
        self._server = server
        self._logs = logs
        self._quarantine = quarantine
        self._stack = ExitStack()
        self.kafka = KafkaCluster(3, controllers=1, proxied=False, slow_disk=True, heap="192m")
        self.site: Site
        self.traffic: Traffic
        self._reader: KafkaReader

    def __enter__(self) -> Stage:
        try:
            self._set()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _set(self) -> None:
        self.kafka.start()
        self._stack.callback(self.kafka.stop)
        others = [b.internal for b in self.kafka.brokers.values() if b.id != SICK]
        self._reader = KafkaReader(BrokerPool(Connection(tuple(reversed(others))), PATIENT))
        self._reader.read()
        self._reader.avoid([SICK])
        self.site = Site(self._server, self.kafka, self._logs)
        self._stack.callback(self._end_processes)
        self.site.topics({TOPIC: PARTITIONS}, configs={"min.insync.replicas": "2"})
        self.site.policy(quarantine=self._quarantine)
        self.site.operator()
        for broker in self.kafka.brokers.values():
            beside = ["--policy", POLICY, "-n", self.site.namespace, "--broker", str(broker.id)]
            probe = [sys.executable, "-m", "bellwether", "probe", "storage", *beside]
            disk = self.kafka.slow_disk(broker.id).environment()
            self.site.start(f"storage-{broker.id}", [*probe, "--directory", broker.log_dir], disk)
            agent = [sys.executable, "-m", "bellwether", "quarantine-agent", *beside, "--process", broker.pattern]
            self.site.start(f"agent-{broker.id}", [*agent, "--lease-namespace", self.site.namespace])
        self.until(lambda: all(self.verdict(b) == "Healthy" for b in self.kafka.brokers), 90, "everybody is Healthy")
        self.traffic = self._stack.enter_context(Traffic(self.kafka.bootstrap, TOPIC, PARTITIONS, PER_SECOND))

    def verdict(self, broker: int) -> str:
        """What the operator says of a broker."""
        return self.site.verdict(broker)[0]

    def quarantined(self) -> bool:
        """Whether the operator says that the sick broker is paused."""
        return condition(self.site.health(SICK), "Quarantined").get("status") == "True"

    def quarantine(self) -> tuple[str, str]:
        """Why the sick broker is, or is not, paused."""
        said = condition(self.site.health(SICK), "Quarantined")
        return str(said.get("reason", "")), str(said.get("message", ""))

    def recorded(self) -> bool:
        """Whether the operator says that the sick broker is paused no more."""
        return condition(self.site.health(SICK), "Quarantined").get("status") == "False"

    def demoted(self) -> bool:
        """Whether the sick broker is demoted, and leads nothing."""
        return demoted(self.site.health(SICK)) and self.site.led_by(SICK) == 0

    def paused(self) -> bool:
        """Whether the sick broker's process stands still, by the kernel's word."""
        pid = self.kafka.broker(SICK).process.pid
        return pid is not None and state_of(PROC, pid) == STOPPED

    def in_every_isr(self, broker: int) -> bool:
        """Whether a broker is in the ISR of all partitions."""
        return all(broker in p.isr for p in self._partitions())

    def in_no_isr(self, broker: int) -> bool:
        """Whether a broker is in the ISR of none."""
        return not any(broker in p.isr for p in self._partitions())

    def _partitions(self) -> tuple[Partition, ...]:
        """As others see them: a broker that was paused still believes what it knew before."""
        return self._reader.partitions([TOPIC])

    def until(self, reached: Callable[[], bool], limit: float, wish: str) -> float:
        """Wait; when it came about, in monotonic seconds. Raises TooLate with the ends of all logs."""
        until(reached, limit, wish, every=TICK, seen=self.site.logs)
        return time.monotonic()

    def _end_processes(self) -> None:
        for process in self.site.processes:
            process.ask_to_stop()
        for process in self.site.processes:
            process.stop(10)
