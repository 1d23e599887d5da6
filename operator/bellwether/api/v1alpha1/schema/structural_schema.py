"""Structural schema of a model: the subset of OpenAPI that CustomResourceDefinitions accept.

References are written out, ``null`` becomes an absent field, titles go, and what the API server would refuse stops the
generator instead: the mistake is ours, and is to be seen here. Called by ``crd_manifests``.
"""

from __future__ import annotations

from typing import Any

from bellwether.api.v1alpha1.base_model import VALIDATIONS, Model

Schema = dict[str, Any]

KEPT = frozenset(
    {
        "type",
        "format",
        "description",
        "default",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "items",
        "properties",
        "required",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        VALIDATIONS,
    }
)
"""Every keyword that may appear in our CRDs. The API server knows more; another one is added when it is needed."""

_DROPPED = frozenset({"title", "$defs", "additionalProperties"})


def structural(model: type[Model], *, defaults: bool) -> Schema:
    """The structural schema of a model. ValueError for what a CRD cannot say.

    ``defaults`` is for what people write. A status gets none: what nobody has reported is absent.
    """
    whole = model.model_json_schema(by_alias=True)
    return _walk(whole, whole.get("$defs", {}), defaults, model.__name__)


def _walk(schema: Schema, definitions: Schema, defaults: bool, where: str) -> Schema:
    schema = _resolved(schema, definitions)
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            needed = schema.get("required", ())  # what a person has to write is never made up
            result[keyword] = {
                n: _property(v, definitions, defaults, f"{where}.{n}", made_up=n not in needed)
                for n, v in value.items()
            }
        elif keyword == "items":
            result[keyword] = _walk(value, definitions, defaults, f"{where}[]")
        elif keyword == "default":
            if defaults and value not in (None, "", []):
                result[keyword] = value
        elif keyword in KEPT:
            result[keyword] = value
        elif keyword not in _DROPPED:
            raise ValueError(f"{where}: a CustomResourceDefinition has no keyword {keyword}: {value}")
    if "type" not in result and "x-kubernetes-int-or-string" not in result:
        raise ValueError(f"{where}: a structural schema needs a type")
    return result


def _property(schema: Schema, definitions: Schema, defaults: bool, where: str, *, made_up: bool) -> Schema:
    result = _walk(schema, definitions, defaults, where)
    if "description" not in result:
        raise ValueError(f"{where}: a field needs a description; kubectl explain shows it")
    nested = result.get("type") == "object" and not result.get("required")
    if defaults and made_up and nested and not _nullable(schema):
        result["default"] = _default(result)
    return result


def _default(schema: Schema) -> Schema:
    """What an object that is left out starts from: empty, as the API server then fills in the defaults inside.

    Where a rule looks at the object it is written out: the rule is tried on the default as it stands here.
    """
    if VALIDATIONS not in schema:
        return {}
    return {name: inside["default"] for name, inside in schema["properties"].items() if "default" in inside}


def _nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", [])


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema with references written out and alternatives reduced to what a CRD can say."""
    rest = {k: v for k, v in schema.items() if k not in ("$ref", "anyOf", "const")}
    if "const" in schema:
        rest["enum"] = [schema["const"]]
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        return {**_resolved(target, definitions), **rest}
    if "anyOf" in schema:
        ways = [way for way in schema["anyOf"] if way != {"type": "null"}]
        if len(ways) == 1:
            return {**_resolved(ways[0], definitions), **rest}
        if sorted(way.get("type", "") for way in ways) == ["integer", "string"]:
            return {**rest, "x-kubernetes-int-or-string": True}
        raise ValueError(f"a CustomResourceDefinition cannot choose between {ways}")
    return rest
