"""Printer columns of ``kubectl get lp,bh``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of ``priority`` 1 show with ``-o wide`` only."""

    name: str
    path: str
    description: str
    type: str = "string"
    priority: int = 0

    def schema(self) -> dict[str, Any]:
        """The column as an entry of ``additionalPrinterColumns``."""
        entry = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return {**entry, "priority": self.priority} if self.priority else entry


def _condition(type_: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


AGE = Column("Age", ".metadata.creationTimestamp", "Since the object was created.", "date")

LEADERSHIP_POLICY = (
    Column("Mode", ".spec.mode", "Whether the policy acts."),
    Column("Ready", _condition("Ready", "status"), "Whether the policy does its work."),
    Column("Reason", _condition("Ready", "reason"), "Why it is, or is not, ready."),
    Column("Sick", ".status.brokers.sick", "Brokers judged Sick.", "integer"),
    Column("Demoted", ".status.brokers.demoted", "Brokers kept from leading.", "integer"),
    Column("Displaced", ".status.displacedPartitions", "Partitions in another replica order than before.", "integer"),
    Column("Cluster", ".status.cluster", "The Kafka cluster that was found: Strimzi's name for it, else its id."),
    Column("Pending", ".status.leadersOutOfPlace", "Partitions that the wrong broker leads.", "integer", priority=1),
    Column("Rebalance", ".status.rebalance.state", "How the rebalance by load stands.", priority=1),
    Column("Message", ".status.message", "The news in one sentence.", priority=1),
    AGE,
)

BROKER_HEALTH = (
    Column("Broker", ".spec.brokerId", "The broker's id.", "integer"),
    Column("Verdict", ".status.verdict.state", "What the signals add up to."),
    Column("Reason", ".status.verdict.reason", "Why."),
    Column("Since", ".status.verdict.since", "How long it has been so.", "date"),
    Column("Leaders", ".status.leaders", "Partitions that the broker leads.", "integer"),
    Column("Demoted", _condition("Demoted", "status"), "Whether the broker is kept from leading."),
    Column("Override", ".spec.override.state", "A person's word on the broker."),
    Column("Pod", ".status.pod", "The broker's pod, where Strimzi runs it.", priority=1),
    Column("Policy", ".spec.policyRef.name", "The policy of the broker's cluster.", priority=1),
    Column("Message", ".status.verdict.message", "Why, in one sentence.", priority=1),
)
