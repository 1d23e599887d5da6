"""API reference pages, generated from the same schemas as the CRDs. Called by ``generate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from bellwether.api.v1alpha1.base_model import API_VERSION, VALIDATIONS
from bellwether.api.v1alpha1.schema.crd_manifests import Kind

_NOTE = "<!-- Generated from operator/bellwether/api/v1alpha1; do not edit: make generate -->"
_HEAD = f"""# API reference: `{API_VERSION}`

All kinds are namespaced and in the category `bellwether`: `kubectl get bellwether` lists them. A field in **bold**
is required if its parent is set. `[]` marks the entries of a list.
"""


def pages(kinds: Sequence[Kind]) -> dict[str, str]:
    """Pages of Markdown by name: one for each kind, and ``crds.md``, which lists them."""
    listed = (f"- [{kind.name}]({kind.name.lower()}.md): {kind.schema()['description']}" for kind in kinds)
    index = "\n".join([_NOTE, _HEAD, *listed, ""])
    return {"crds.md": index} | {f"{kind.name.lower()}.md": "\n".join([_NOTE, *_kind(kind)]) for kind in kinds}


def _kind(kind: Kind) -> Iterator[str]:
    schema = kind.schema()
    yield f"# {kind.name}"
    yield ""
    yield f"{schema['description']} Short name `{kind.short}`, plural `{kind.plural}`."
    yield ""
    for part in ("spec", "status"):
        yield f"## {kind.name}: `{part}`"
        yield ""
        yield "| field | type | default | description |"
        yield "|---|---|---|---|"
        yield from _rows(schema["properties"][part], "")
        yield ""
    rules = list(_rules(schema, ""))
    if rules:
        yield f"## {kind.name}: rules"
        yield ""
        yield from rules
        yield ""


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        shown = f"**`{prefix}{name}`**" if name in required else f"`{prefix}{name}`"
        default = (
            f"`{_literal(field['default'])}`"
            if "default" in field and field["type" if "type" in field else "default"] != "object"
            else ""
        )
        yield f"| {shown} | {_type(field)} | {default} | {field['description']} |"
        below = field.get("items", field)
        yield from _rows(below, f"{prefix}{name}{'[]' if 'items' in field else ''}.")


def _type(field: dict[str, Any]) -> str:
    """The type with its limits, for readers."""
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    if "items" in field:
        return f"list of {_type(field['items'])}{_bounds(field, 'minItems', 'maxItems')}"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field.get("format") == "date-time":
        return "time"
    limits = ("minLength", "maxLength") if field["type"] == "string" else ("minimum", "maximum")
    return f"{field['type']}{_bounds(field, *limits)}"


def _bounds(field: dict[str, Any], least: str, most: str) -> str:
    if least in field and most in field:
        return f", {field[least]} to {field[most]}"
    if most in field:
        return f", at most {field[most]}"
    return f", at least {field[least]}" if least in field else ""


def _literal(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=True)).removesuffix("\n").removesuffix("\n...")


def _rules(schema: dict[str, Any], path: str) -> Iterator[str]:
    for rule in schema.get(VALIDATIONS, []):
        yield f"- `{path}{rule.get('fieldPath', '')}`: {rule['message']}.".replace("`.", "`").replace("``: ", "")
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")
