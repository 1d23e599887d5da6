"""CustomResourceDefinition manifests of all kinds, built from their models. Used by ``generate`` and ``bellwether
crds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from bellwether.api.v1alpha1.base_model import GROUP, VALIDATIONS, VERSION, Model, Object
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema.structural_schema import structural
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.status.status_conditions import UNREAD, UNSEEN, UNUSED


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column of ``kubectl get``; with ``priority`` 1 it is shown with ``-o wide`` only."""

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


_AGE = Column("Age", ".metadata.creationTimestamp", "Time since the object was created.", "date")

_POLICY_COLUMNS = (
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
    Column("Message", ".status.message", "Summary in one sentence.", priority=1),
    _AGE,
)

_REBALANCE_COLUMNS = (
    Column("Policy", ".spec.policy", "LeadershipPolicy of the Kafka cluster."),
    Column("Ready", _condition("Ready", "status"), "Whether the operator of the policy uses the object."),
    Column("State", ".status.state", "State of the rebalance."),
    Column("Plan", ".status.digest", "Digest of the plan, for its approval."),
    Column("Moves", ".status.plan.moves", "Number of leaders that the plan moves.", "integer"),
    Column("Before", ".status.plan.loadBefore", "Highest relative load before the plan.", "integer"),
    Column("After", ".status.plan.loadAfter", "Highest relative load after the plan.", "integer"),
    Column("Loss", ".status.losses.broker.now.ratio", "Load after the worst loss of one broker, by the busiest now."),
    Column("Applied", ".status.applied", "Number of partitions with the order of the plan.", "integer", priority=1),
    Column("Message", ".status.message", "Explanation of the state, in one sentence.", priority=1),
    Column("Why", _condition("Ready", "message"), "Why the object is used, or is not.", priority=1),
    _AGE,
)

_SOURCE_COLUMNS = (
    Column("Ready", _condition("Ready", "status"), "Whether a prober uses the source."),
    Column("Reason", _condition("Ready", "reason"), "Why, or why not."),
    Column("Prometheus", ".spec.prometheus.url", "URL of the Prometheus server."),
    Column("Plugin", ".spec.plugin.type", "Signal type of the plug-in."),
    Column("Message", _condition("Ready", "message"), "What is wrong, and what to do.", priority=1),
    _AGE,
)

_BROKER_COLUMNS = (
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


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its model, names and printer columns."""

    model: type[Object]
    plural: str
    singular: str
    short: str
    columns: tuple[Column, ...]
    unwritten: Mapping[str, str] | None = None
    """The condition of an object whose status was never written."""

    @property
    def name(self) -> str:
        """Name of the kind, as in manifests."""
        return self.model.__name__

    def part(self, field: str) -> type[Model]:
        """The model of ``spec`` or ``status``."""
        annotation = self.model.model_fields[field].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Model)):
            raise TypeError(f"{self.name}.{field} is not a model")
        return annotation

    def schema(self) -> dict[str, Any]:
        """Structural schema of the object. The API server adds that of metadata."""
        whole: dict[str, Any] = {
            "type": "object",
            "description": " ".join((self.model.__doc__ or "").split()),
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string", "description": f"Always {GROUP}/{VERSION}."},
                "kind": {"type": "string", "description": f"Always {self.name}."},
                "metadata": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "maxLength": self.model.longest_name}},
                },
                "spec": structural(self.part("spec"), defaults=True),
                "status": structural(self.part("status"), defaults=False),
            },
        }
        if self.unwritten:  # as in the Gateway API: shown until a status is written
            whole["properties"]["status"]["default"] = {"conditions": [self.unwritten]}
        if self.model.rules:
            whole[VALIDATIONS] = [rule.schema() for rule in self.model.rules]
        return whole

    def definition(self) -> dict[str, Any]:
        """The CustomResourceDefinition."""
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "names": {
                    "kind": self.name,
                    "listKind": f"{self.name}List",
                    "plural": self.plural,
                    "singular": self.singular,
                    "shortNames": [self.short],
                    "categories": ["bellwether"],
                },
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": VERSION,
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "additionalPrinterColumns": [column.schema() for column in self.columns],
                        "schema": {"openAPIV3Schema": with_defaults(self.schema())},
                    }
                ],
            },
        }


KINDS = (
    Kind(LeadershipPolicy, "leadershippolicies", "leadershippolicy", "lp", _POLICY_COLUMNS, UNSEEN),
    Kind(BrokerHealth, "brokerhealths", "brokerhealth", "bh", _BROKER_COLUMNS),
    Kind(LeaderRebalance, "leaderrebalances", "leaderrebalance", "lr", _REBALANCE_COLUMNS, UNREAD),
    Kind(SignalSource, "signalsources", "signalsource", "ss", _SOURCE_COLUMNS, UNUSED),
)


def with_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with each field's default in its description, because ``kubectl explain`` does not show defaults."""
    result = dict(schema)
    default = schema.get("default")
    if default is not None and not isinstance(default, dict):
        shown = str(default).lower() if isinstance(default, bool) else default
        result["description"] = f"{schema['description']} Defaults to {shown}."
    if "properties" in schema:
        result["properties"] = {name: with_defaults(field) for name, field in schema["properties"].items()}
    if "items" in schema:
        result["items"] = with_defaults(schema["items"])
    return result


class _Plain(yaml.SafeDumper):
    """YAML dumper that writes every mapping in full, without anchors, so that the file is easy to read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def manifest(kind: Kind) -> str:
    """The CustomResourceDefinition as YAML, the same bytes every time."""
    return yaml.dump(kind.definition(), Dumper=_Plain, sort_keys=False, width=110, allow_unicode=True)


def manifests() -> str:
    """All manifests as one stream of YAML documents, for ``kubectl apply -f -``."""
    return "".join(f"---\n{manifest(kind)}" for kind in KINDS)
