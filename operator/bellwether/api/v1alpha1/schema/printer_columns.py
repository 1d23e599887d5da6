"""Printer columns of ``kubectl get lp,bh,ss``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column; with ``priority`` 1 it is shown with ``-o wide`` only."""

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


AGE = Column("Age", ".metadata.creationTimestamp", "Time since the object was created.", "date")

LEADERSHIP_POLICY = (
    Column("Mode", ".status.mode", "Observe reports only; Enforce moves leaders; Suspended moves nothing."),
    Column("Ready", _condition("Ready", "status"), "Whether the policy is working."),
    Column("Reason", _condition("Ready", "reason"), "The worst thing that is so."),
    Column("Sick", ".status.brokers.sick", "Number of Sick brokers.", "integer"),
    Column("Down", ".status.brokers.down", "Number of Down brokers.", "integer"),
    Column("Unknown", ".status.brokers.unknown", "Number of brokers that cannot be judged.", "integer"),
    Column("Demoted", ".status.brokers.demoted", "Number of demoted brokers.", "integer"),
    Column(
        "At-Risk",
        ".status.partitionsAtRisk.total",
        "Number of partitions with replicas out of sync, or without a leader.",
        "integer",
    ),
    Column(
        "Displaced",
        ".status.displacedPartitions",
        "Number of partitions whose replica order differs from the baseline.",
        "integer",
        priority=1,
    ),
    Column("Cluster", ".status.cluster", "Name of the Strimzi cluster, otherwise the id of the Kafka cluster."),
    Column(
        "Pending",
        ".status.plan.moves",
        "Number of partitions whose replica order or leader still has to change.",
        "integer",
        priority=1,
    ),
    Column("Rebalance", ".status.rebalance.state", "State of the load rebalance.", priority=1),
    Column("Message", ".status.message", "Summary in one sentence.", priority=1),
    AGE,
)

SIGNAL_SOURCE = (
    Column("Ready", _condition("Ready", "status"), "Whether a prober uses the source."),
    Column("Reason", _condition("Ready", "reason"), "Why, or why not."),
    Column("Prometheus", ".spec.prometheus.url", "URL of the Prometheus server."),
    Column("Plugin", ".spec.plugin.type", "Signal type of the plug-in."),
    Column("Message", _condition("Ready", "message"), "What is wrong, and what to do.", priority=1),
    AGE,
)

BROKER_HEALTH = (
    Column("Broker", ".spec.brokerId", "Node id of the broker.", "integer"),
    Column("Verdict", ".status.verdict.state", "Health state of the broker."),
    Column("Reason", ".status.verdict.reason", "Reason of the verdict."),
    Column("Since", ".status.verdict.since", "Time since which the verdict has been the same.", "date"),
    Column("Leaders", ".status.leaders", "Number of partitions that the broker leads.", "integer"),
    Column("Demoted", _condition("Demoted", "status"), "Whether the broker is demoted."),
    Column("Why", _condition("Demoted", "reason"), "Why the broker is demoted, or is not."),
    Column("Override", ".spec.override.state", "State of the override."),
    Column("Pod", ".status.pod", "Name of the broker's pod, if Strimzi runs the cluster.", priority=1),
    Column("Policy", ".spec.policyRef.name", "LeadershipPolicy of the broker's cluster.", priority=1),
    Column("Message", ".status.verdict.message", "Explanation of the verdict, in one sentence.", priority=1),
)
