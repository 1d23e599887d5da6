"""The compared ways to move leaders away from a broker and back: bare requests, other tools, and ours.

Each one leaves the cluster as it found it after ``give_back``. ``evacuate`` and ``give_back`` return the monotonic time
at which a person or a signal asked for it. Called by ``__main__``, one contender at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Outcome, Reorder
from realparts import kafka_tools
from testkit.kafka.kafka_site import PATIENT
from testkit.processes.sites import POLICY, Site
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

BATCH = 2000

Requests = list[tuple[Reorder, bool]]
"""Orders, and whether their first replica is elected."""


class Contender(Protocol):
    """One way to do it."""

    name: str

    def evacuate(self, broker: int) -> float:
        """Ask for all leaders of the broker to move away; returns when that was."""
        ...

    def give_back(self, broker: int) -> float:
        """Ask for all leaders to return; returns when that was."""
        ...

    def finish(self) -> None:
        """Wait until nothing of it is under way any more. Raises RuntimeError if it failed."""
        ...


class Floor:
    """Only what Kafka needs: one read, then reorders and elections of the led partitions, ``BATCH`` in a request."""

    name = "floor"

    def __init__(self, bootstrap: Sequence[str], topics: Sequence[str]) -> None:
        pool = BrokerPool(Connection(tuple(bootstrap), PLAINTEXT), PATIENT)
        self._reader, self._mover, self._topics = KafkaReader(pool), KafkaMover(pool), topics
        self._before: list[Partition] = []

    def evacuate(self, broker: int) -> float:
        """Reorder and elect what the broker leads, its leaders alternating between the others."""
        began = time.monotonic()
        self._before = [p for p in self._reader.partitions(self._topics) if p.leader == broker]
        self._move([_away(p, number) for number, p in enumerate(self._before)])
        return began

    def give_back(self, broker: int) -> float:  # noqa: ARG002 - the protocol's signature
        """The orders of before."""
        began = time.monotonic()
        self._reader.partitions(self._topics)
        self._move([Reorder(p.name, p.replicas) for p in self._before])
        return began

    def finish(self) -> None:
        """Nothing is: requests are answered."""

    def _move(self, orders: list[Reorder]) -> None:
        for start in range(0, len(orders), BATCH):
            batch = orders[start : start + BATCH]
            _require(self._mover.reorder(batch))
            _require(self._mover.elect([one.name for one in batch]))


class CruiseControl(Floor):
    """The requests that Cruise Control's executor sends, with every limit and interval of its configuration lifted.

    It reorders everything in one batch, waits until the metadata of a broker shows it, and elects then (``Executor``,
    commit dadba67). Left out, in its favour: its model of the cluster, its goals, throttles and Java. With its
    defaults it checks every 10 s, and moves 250 leaders of a broker at a time.
    """

    name = "cruise-control"
    _CHECK_SECONDS = 0.001
    """The least that ``min.execution.progress.check.interval.ms`` allows."""

    def _move(self, orders: list[Reorder]) -> None:
        _require(self._mover.reorder(orders))
        wanted = {one.name: one.order for one in orders}
        while any(p.replicas != wanted.get(p.name, p.replicas) for p in self._reader.partitions(self._topics)):
            time.sleep(self._CHECK_SECONDS)
        _require(self._mover.elect(list(wanted)))


class KafkaTools:
    """``kafka-reassign-partitions.sh --execute``, then ``kafka-leader-election.sh``, their files written beforehand."""

    name = "kafka-tools"

    def __init__(self, bootstrap: str, topics: Sequence[str], folder: Path) -> None:
        self._bootstrap, self._topics, self._folder = bootstrap, topics, folder / "kafka-tools"
        self._reader = KafkaReader(BrokerPool(Connection(tuple(bootstrap.split(",")), PLAINTEXT), PATIENT))
        self._before: list[Reorder] = []
        kafka_tools.install(self._folder)

    def evacuate(self, broker: int) -> float:
        """The orders that the floor would give."""
        led = [p for p in self._reader.partitions(self._topics) if p.leader == broker]
        self._before = [Reorder(p.name, p.replicas) for p in led]
        return self._move([_away(p, number) for number, p in enumerate(led)])

    def give_back(self, broker: int) -> float:  # noqa: ARG002 - the protocol's signature
        """The orders of before."""
        return self._move(self._before)

    def finish(self) -> None:
        """Nothing is: both commands have ended."""

    def _move(self, orders: list[Reorder]) -> float:
        named = [{"topic": o.name.topic, "partition": o.name.partition, "replicas": o.order} for o in orders]
        plan = self._folder / "orders.json"
        plan.write_text(json.dumps({"version": 1, "partitions": named}))
        began = time.monotonic()
        self._run("kafka-reassign-partitions.sh", "--execute", "--reassignment-json-file", str(plan))
        self._run("kafka-leader-election.sh", "--election-type", "preferred", "--path-to-json-file", str(plan))
        return began

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(self._folder / tool), "--bootstrap-server", self._bootstrap, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit(120), check=False)
        if done.returncode:
            raise RuntimeError(f"{tool} ended with status {done.returncode}:\n{done.stderr or done.stdout}")


class ByHand:
    """``bellwether demote`` and ``promote`` with an undo record in a file, as processes."""

    def __init__(self, bootstrap: str, folder: Path, tree: Path, label: str = "") -> None:
        self.name = f"by hand{label}"
        self._bootstrap = bootstrap
        self._record = folder / f"undo{label.replace(' ', '-')}.json"
        self._environment = source(tree)
        self._process: subprocess.Popen[str] | None = None
        self.started: float | None = None
        """When the first line of output came, which follows the first read, of the last command."""

    def evacuate(self, broker: int) -> float:
        """``bellwether demote``."""
        return self._run("demote", broker)

    def give_back(self, broker: int) -> float:
        """``bellwether promote``."""
        return self._run("promote", broker)

    def finish(self) -> None:
        """Wait for the end of the process."""
        assert self._process is not None
        output, _ = self._process.communicate(timeout=limit(120))
        if self._process.returncode:
            raise RuntimeError(f"{self.name} ended with status {self._process.returncode}:\n{output}")

    def _run(self, verb: str, broker: int) -> float:
        command = [sys.executable, "-m", "bellwether", verb, str(broker)]
        command += ["--bootstrap", self._bootstrap, "--record", str(self._record)]
        began = time.monotonic()
        self._process = subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self.started = time.monotonic() - began
        return began


class Operator:
    """A running operator whose policy is suspended while it is not its turn; asked by a patch of the override."""

    def __init__(self, site: Site, topics: Sequence[str], tree: Path, label: str = "") -> None:
        self.name = f"operator{label}"
        self._site, self._topics = site, topics
        self._reader = KafkaReader(BrokerPool(Connection(tuple(site.kafka.bootstrap.split(",")), PLAINTEXT), PATIENT))
        self._baseline = self._orders()
        self._away: int | None = None
        site.policy(suspend=True)
        site.operator(**source(tree))
        site.until_reported()

    def begin(self) -> None:
        """From here on it acts."""
        self._site.change(suspend=False)
        self._site.until(self._acts, 60, "the policy acts", self._site.ready)

    def end(self) -> None:
        """From here on it does not."""
        self._site.change(suspend=True)
        self._site.until(lambda: self._mode() == "Suspended", 60, "it is suspended", self._site.ready)

    def evacuate(self, broker: int) -> float:
        """Override ``Demoted``."""
        self._away = broker
        return self._override(broker, {"state": "Demoted", "reason": "the benchmark asks for it"})

    def give_back(self, broker: int) -> float:
        """Override ``Promoted``, which waits for no signal."""
        self._away = None
        return self._override(broker, {"state": "Promoted", "reason": "the benchmark asks for it"})

    def lift(self, broker: int) -> None:
        """Remove the override."""
        self._override(broker, None)

    def finish(self) -> None:
        """Wait until the partitions that the broker only follows have their order, too."""
        self._site.until(self._in_order, 60, "every order is as planned", self._site.ready)

    def _mode(self) -> str:
        return str(self._site.status().get("mode"))

    def _acts(self) -> bool:
        return self._mode() == "Enforce" and self._site.settled()

    def _in_order(self) -> bool:
        now = self._orders()
        if self._away is None:
            return now == self._baseline
        return all(order[-1] == self._away for order in now.values() if self._away in order)

    def _orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {p.name: p.replicas for p in self._reader.partitions(self._topics)}

    def _override(self, broker: int, override: dict[str, Any] | None) -> float:
        began = time.monotonic()
        name = object_names.broker_health(POLICY, broker)
        self._site.api.merge(BROKER_HEALTHS, self._site.namespace, name, {"spec": {"override": override}})
        return began


def source(tree: Path) -> dict[str, str]:
    """The environment in which ``bellwether`` is the one of that source tree."""
    paths = [str(tree / "operator"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _require(outcomes: Mapping[TopicPartition, Outcome]) -> None:
    if failed := [(name, outcome) for name, outcome in outcomes.items() if not outcome.ok]:
        raise RuntimeError(f"Kafka refused {len(failed)} partitions, first {failed[0]}")


def _away(partition: Partition, number: int) -> Reorder:
    others = [b for b in partition.replicas if b != partition.leader]
    turn = number % len(others)
    assert partition.leader is not None
    return Reorder(partition.name, (*others[turn:], *others[:turn], partition.leader))
