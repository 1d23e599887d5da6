"""Generate the chart's ``values.yaml``, ``values.schema.json`` and ``README.md`` table from the value models.

In: the model of all values. Out: text. Called by ``generate``.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chartvalues.values import Values

WIDTH = 110
NOTICE = "Generated from helm/chartvalues; do not edit: make generate"


def values_yaml() -> str:
    """The defaults, each with its description as a comment."""
    return f"# {NOTICE}\n" + "\n".join(_block(Values, Values(), 0)) + "\n"


def schema_json() -> str:
    """The JSON schema; unknown keys are not allowed."""
    return json.dumps(_bare(Values.model_json_schema(by_alias=True)), indent=2) + "\n"


def table() -> str:
    """A row for each value: path, default, description."""
    rows = "\n".join(f"| `{path}` | {default} | {text} |" for path, default, text in _rows(Values, Values(), ""))
    return f"| value | default | description |\n|---|---|---|\n{rows}"


def paths() -> list[str]:
    """The path of every value; ``name[]`` means the items of a list, ``name{}`` the entries of a map."""
    return [path for path, _, _ in _rows(Values, Values(), "")]


def _block(model: type[BaseModel], given: BaseModel, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for field, key, value in _fields(model, given):
        if depth == 0:
            yield ""
        words = [field.description or "", *_members(field)]
        for line in [part for text in words for part in textwrap.wrap(text, WIDTH - 2 * depth, break_on_hyphens=False)]:
            yield f"{indent}# {line}"
        if isinstance(value, BaseModel):
            yield f"{indent}{key}:"
            yield from _block(type(value), value, depth + 1)
        else:
            yield f"{indent}{key}: {_json(value)}"


def _members(field: FieldInfo) -> list[str]:
    """The fields of a list's items or a map's entries, for a reader of ``values.yaml``."""
    item, _ = _item(field)
    if item is None:
        return []
    return [f"- {field_key(name, f)}: {f.description}" for name, f in item.model_fields.items()]


def _rows(model: type[BaseModel], given: BaseModel | None, prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field_key(name, field)}"
        value = getattr(given, name) if given is not None else _default(field)
        if isinstance(value, BaseModel):
            yield from _rows(type(value), value, f"{path}.")
            continue
        shown = "required" if given is None and field.is_required() else f"`{_json(value)}`"
        yield path, shown.replace("|", "\\|"), str(field.description).replace("|", "\\|")
        item, mark = _item(field)
        if item is not None:
            yield from _rows(item, None, f"{path}{mark}.")


def _fields(model: type[BaseModel], given: BaseModel) -> Iterator[tuple[FieldInfo, str, Any]]:
    for name, field in model.model_fields.items():
        yield field, field_key(name, field), getattr(given, name)


def field_key(name: str, field: FieldInfo) -> str:
    """The key of a field in ``values.yaml``."""
    return str(field.alias or name)


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _item(field: FieldInfo) -> tuple[type[BaseModel] | None, str]:
    """The model of a list's items or a map's entries, None if it has none; and how their paths are marked."""
    marks: dict[Any, str] = {list: "[]", dict: "{}"}
    mark = marks.get(get_origin(field.annotation), "")
    member = get_args(field.annotation)[-1] if mark else None
    return (member if isinstance(member, type) and issubclass(member, BaseModel) else None), mark


def _json(value: Any) -> str:
    """A default in one line; models in a map without what is not set."""
    return json.dumps(value, default=lambda model: model.model_dump(by_alias=True, exclude_unset=True))


def _bare(schema: Any) -> Any:
    """Without the titles and defaults that pydantic adds; ``values.yaml`` has them."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    bare.pop("default", None)
    if "patternProperties" in bare:
        bare["additionalProperties"] = False  # a key that has not the form of a name
    return {
        # Field names are not keywords: a field may be called title or default.
        key: {name: _bare(one) for name, one in value.items()} if key in ("properties", "$defs") else _bare(value)
        for key, value in bare.items()
    }
