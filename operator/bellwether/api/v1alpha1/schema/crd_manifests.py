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
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema import printer_columns
from bellwether.api.v1alpha1.schema.structural_schema import structural
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.status.status_conditions import UNSEEN, UNUSED


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its model, names and printer columns."""

    model: type[Object]
    plural: str
    singular: str
    short: str
    columns: tuple[printer_columns.Column, ...]
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
        if self.unwritten:  # as in the Gateway API: shown while nobody has written a status
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
    Kind(LeadershipPolicy, "leadershippolicies", "leadershippolicy", "lp", printer_columns.LEADERSHIP_POLICY, UNSEEN),
    Kind(BrokerHealth, "brokerhealths", "brokerhealth", "bh", printer_columns.BROKER_HEALTH),
    Kind(SignalSource, "signalsources", "signalsource", "ss", printer_columns.SIGNAL_SOURCE, UNUSED),
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
