"""CustomResourceDefinition manifests of both kinds, built from their models. For ``generate`` and
``bellwether crds``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from bellwether.api.v1alpha1.base_model import GROUP, VALIDATIONS, VERSION, Model, Object
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema import printer_columns
from bellwether.api.v1alpha1.schema.structural_schema import structural


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind, with what its model does not say."""

    model: type[Object]
    plural: str
    singular: str
    short: str
    columns: tuple[printer_columns.Column, ...]

    @property
    def name(self) -> str:
        """The kind's name, as in manifests."""
        return self.model.__name__

    def part(self, field: str) -> type[Model]:
        """The model of ``spec`` or ``status``."""
        annotation = self.model.model_fields[field].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Model)):
            raise TypeError(f"{self.name}.{field} is not a model")
        return annotation

    def schema(self) -> dict[str, Any]:
        """The structural schema of the whole object; metadata is the API server's own."""
        whole: dict[str, Any] = {
            "type": "object",
            "description": (self.model.__doc__ or "").strip(),
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
                        "schema": {"openAPIV3Schema": self.schema()},
                    }
                ],
            },
        }


KINDS = (
    Kind(LeadershipPolicy, "leadershippolicies", "leadershippolicy", "lp", printer_columns.LEADERSHIP_POLICY),
    Kind(BrokerHealth, "brokerhealths", "brokerhealth", "bh", printer_columns.BROKER_HEALTH),
)


class _Plain(yaml.SafeDumper):
    """Writes every mapping in full: an anchor saves lines and costs the reader."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def manifest(kind: Kind) -> str:
    """The CustomResourceDefinition as YAML, the same bytes every time."""
    return yaml.dump(kind.definition(), Dumper=_Plain, sort_keys=False, width=110, allow_unicode=True)


def manifests() -> str:
    """All of them as one stream of YAML documents, for ``kubectl apply -f -``."""
    return "".join(f"---\n{manifest(kind)}" for kind in KINDS)
