"""Field types of the operator configuration: checked strings, names, and the namespaces that may use an entry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from bellwether.api.v1alpha1.base_model import DISTINCT, Matching


@dataclass(frozen=True, slots=True)
class Checked(Matching):
    """Like ``Matching`` of the API, with a pattern in its JSON schema in place of CEL, for the chart's values."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


ConfigName = Annotated[
    str, Checked("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be a name of lower case letters, digits and '-'", 63)
]
ObjectName = Annotated[
    str,
    Checked(
        "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        "must be the name of an object: lower case letters, digits, '-' and '.'",
        253,
    ),
]
NamespaceName = Annotated[
    str, Checked(r"^(\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)$", "must be the name of a namespace, or '*' for all", 63)
]
ALL_NAMESPACES = "*"


def _alone(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    if ALL_NAMESPACES in namespaces and len(namespaces) > 1:
        raise ValueError("has '*' and other names: keep either '*' or the names")
    return namespaces


Namespaces = Annotated[tuple[NamespaceName, ...], Field(min_length=1), DISTINCT, AfterValidator(_alone)]


def allows(namespaces: Iterable[str], namespace: str) -> bool:
    """Whether policies of that namespace may use what has these ``namespaces``."""
    return any(name in (ALL_NAMESPACES, namespace) for name in namespaces)
