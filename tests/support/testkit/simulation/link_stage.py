"""Stage for links between brokers: replication is measured, pairs are cut off from each other, an operator decides."""

from __future__ import annotations

from typing import Self

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, SignalType
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site


class LinkStage:
    """Brokers whose replication is measured, and an operator."""

    def __init__(self, brokers: int = 3, policy: Policy = POLICY, partitions: int = 12, replicas: int = 3) -> None:
        self.site: MemorySite = site(brokers, {})
        self.site.cluster.create_topic("orders", partitions, replicas)
        for broker in self.site.cluster.brokers:
            self.site.signals.say(broker, Reading.PASSING)
            self.say(broker)
        self.home = self.orders()
        self.operator = Operator(self.site, policy)
        self.operator.reconciles(2)

    def say(self, broker: int, other: int | None = None) -> None:
        """The replication prober's word on a broker."""
        kind = SignalType.REPLICATION_LAG
        self.site.signals.say(broker, Reading.PASSING, type=kind, sources=["replication"], broken_link_to=other)

    def slow_syncs(self, slow: int) -> None:
        """All disks are measured, and one takes long to sync."""
        kind = SignalType.STORAGE_LATENCY
        for broker in self.site.cluster.brokers:
            value = 2.0 if broker == slow else 0.01
            self.site.signals.say(broker, Reading.PASSING, type=kind, sources=[f"disk-{broker}"], value=value)

    def cut(self, one: int = 1, other: int = 2, turns: int = 2) -> Self:
        """Two brokers do not reach each other from now on."""
        self.say(one, other)
        self.say(other, one)
        self.turn(turns)
        return self

    def mend(self, one: int = 1, other: int = 2, turns: int = 1) -> None:
        """They do again."""
        self.say(one)
        self.say(other)
        self.turn(turns)

    def turn(self, count: int = 2) -> None:
        """So many turns of the operator."""
        self.operator.reconciles(count)

    def orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica order of every partition."""
        return {p.name: p.replicas for p in self.site.cluster.partitions()}

    def leaders(self) -> dict[TopicPartition, int | None]:
        """The leader of every partition."""
        return {p.name: p.leader for p in self.site.cluster.partitions()}

    def led(self, broker: int) -> int:
        """How many partitions a broker leads."""
        return list(self.leaders().values()).count(broker)

    def report(self, broker: int = 1) -> BrokerReport:
        """The last report of a broker."""
        return next(b for b in self.operator.reports[-1].brokers if b.broker == broker)

    @property
    def record(self) -> UndoRecord:
        """What the undo record holds."""
        assert self.operator.memory is not None
        return self.operator.memory.record

    def ready(self) -> str:
        """What Ready says."""
        return next(c.message for c in self.operator.reports[-1].conditions if c.type == "Ready")

    def held(self) -> set[Reason]:
        """Why demotions and promotions are held."""
        return {Reason(h.reason) for h in self.operator.reports[-1].plan.decisions.held}
