"""An operator process: take over once, then turn after turn, as the policy loop does; in memory, or on real Kafka.

``Operator`` remembers between turns what a process remembers. A new one knows what the undo record and the last
published status say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus
from bellwether.controllers.reporting.status import broker_status, policy_status
from bellwether.controllers.restored_memory import restored_memory
from bellwether.core.demotion.decisions import DecisionFunction, decide
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Demotion, Mode, Policy, Promotion, PromotionWaves
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.gather import Memory
from bellwether.ports.errors import Fenced, Transient
from bellwether.ports.world import World
from bellwether.reconcile import reconcile
from testkit.kubernetes import api_objects
from testkit.simulation.fault_injection import Faults, Interruptions
from testkit.simulation.memory_site import MemoryRecordStore

POLICY = Policy(
    name="main",
    mode=Mode.ENFORCE,
    demotion=Demotion(dwell_seconds=0),  # the turn that finds a broker sick demotes it, unless the dwell is the matter
    # Leaders return at once, unless waves are the matter.
    promotion=Promotion(stabilization_seconds=10, waves=PromotionWaves(skip_up_to_leaders=1000)),
)
GRACE_SECONDS = 20.0
ARRIVAL_SECONDS = 20.0
"""Shorter than the product's: a broker of the fault script that holds a request answers no check meanwhile."""


class Site(Protocol):
    """What outlives a process: ``MemorySite``, or ``KafkaSite``."""

    clock: Any
    store: MemoryRecordStore
    reported: Report | None

    @property
    def cluster_id(self) -> str:
        """The Kafka cluster's id."""

    def process(self, identity: str = "operator-a") -> World:
        """A new process on this site."""


def restored(record: UndoRecord, reported: Report | None) -> Memory:
    """The memory with which a new process continues: through the status that the last one wrote, as in a take-over."""
    if reported is None:
        return Memory(record)
    status = LeadershipPolicyStatus.model_validate(policy_status(reported, 1, {}, None))
    statuses = {one.broker: broker_status(one, None, {}, reported.now) for one in reported.brokers}
    healths = [BrokerHealth.read({**api_objects.health(broker), "status": one}) for broker, one in statuses.items()]
    return restored_memory(record, status, healths)


class Operator:
    """One process on a site. ``reports`` holds what every finished turn said, ``agenda`` what to do of a rebalance."""

    def __init__(
        self,
        site: Site,
        policy: Policy = POLICY,
        *,
        identity: str = "operator-a",
        faults: Faults | None = None,
        life: Interruptions | None = None,
        grace_seconds: float = GRACE_SECONDS,
        arrival_seconds: float = ARRIVAL_SECONDS,
    ) -> None:
        self.site = site
        self.policy = policy
        self.grace_seconds = grace_seconds
        self.arrival_seconds = arrival_seconds
        self.faults = faults or Faults()
        self.world: World = self.faults.around(site.process(identity))
        if life is not None:
            self.world = life.around(self.world)
        self.memory: Memory | None = None
        self.reports: list[Report] = []
        self.fenced = False
        self.rebalance_input = RebalanceInput()

    def reconcile(self, how: DecisionFunction = decide) -> Report | None:
        """One turn, or none where the world did not answer; a process that was fenced does nothing any more."""
        if self.fenced:
            return None
        try:
            if self.memory is None:
                if not self.world.leadership.seconds_left():
                    return None
                self.memory = replace(
                    restored(self.world.records.take_over(self.site.cluster_id), self.site.reported),
                    grace_seconds=self.grace_seconds,
                    arrival_seconds=self.arrival_seconds,
                    quarantine_orders=self.world.quarantine_orders.take_over(),
                )
            done = reconcile(self.world, self.policy, self.memory, how, self.rebalance_input)
        except Transient:
            self.memory = None  # what the store holds is not known: read it back
            return None
        except Fenced:
            self.fenced = True
            return None
        self.memory, self.site.reported = done.memory, done.report
        self.reports.append(done.report)
        return done.report

    def reconciles(self, count: int, seconds: float = 1.0) -> Self:
        """So many turns, some time apart."""
        for _ in range(count):
            self.reconcile()
            self.site.clock.advance(seconds)
        return self

    def settle(self, most: int = 400, seconds: float = 1.0) -> Report:
        """Turns until nothing is left to do and the record holds no tombstone. Raises AssertionError when none ends."""
        for _ in range(most):
            said = self.reconcile()
            self.site.clock.advance(seconds)
            if said is not None and said.settled and self.memory is not None and not self._waiting(said):
                return said
        raise AssertionError(f"not settled after {most} turns: {self.reports[-1:]}, {self.site.store.record}")

    def _waiting(self, said: Report) -> bool:
        assert self.memory is not None
        recovering = any(b.verdict.state == "Recovering" for b in said.brokers)
        tombstones = any(e.state != "Displaced" for e in self.memory.record.entries.values())
        return recovering or tombstones
