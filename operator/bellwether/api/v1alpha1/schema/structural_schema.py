"""Structural schema of a model: the subset of OpenAPI that CustomResourceDefinitions accept.

References are inlined, ``null`` becomes an optional field, titles are dropped. A keyword that the API server would
reject raises an error here, so that it is found at generation. Called by ``crd_manifests``.
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
"""Keywords that may appear in the CRDs. The API server knows more; add one when it is needed."""

_DROPPED = frozenset({"title", "$defs", "additionalProperties"})


def structural(model: type[Model], *, defaults: bool) -> Schema:
    """Structural schema of a model. Raises ValueError for what a CRD cannot express.

    ``defaults`` is True for what users write. A status has no defaults: what has not been reported is unset.
    """
    whole = model.model_json_schema(by_alias=True)
    return _walk(whole, whole.get("$defs", {}), defaults, model.__name__)


def _walk(schema: Schema, definitions: Schema, defaults: bool, where: str) -> Schema:
    schema = _resolved(schema, definitions)
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            required = schema.get("required", ())  # a required field gets no default
            result[keyword] = {
                n: _property(v, definitions, defaults, f"{where}.{n}", optional=n not in required)
                for n, v in value.items()
            }
        elif keyword == "items":
            result[keyword] = _walk(value, definitions, defaults, f"{where}[]")
        elif keyword == "default":
            if defaults and value not in (None, "", []):
                result[keyword] = value
        elif keyword == "description":
            result[keyword] = " ".join(value.split())
        elif keyword in KEPT:
            result[keyword] = value
        elif keyword not in _DROPPED:
            raise ValueError(f"{where}: a CustomResourceDefinition has no keyword {keyword}: {value}")
    if "type" not in result and "x-kubernetes-int-or-string" not in result:
        raise ValueError(f"{where}: a structural schema needs a type")
    return result


def _property(schema: Schema, definitions: Schema, defaults: bool, where: str, *, optional: bool) -> Schema:
    result = _walk(schema, definitions, defaults, where)
    if "description" not in result:
        raise ValueError(f"{where}: a field needs a description; kubectl explain shows it")
    nested = result.get("type") == "object" and not result.get("required")
    if defaults and optional and nested and not _nullable(schema):
        result["default"] = _default(result)
    return result


def _default(schema: Schema) -> Schema:
    """Default of an omitted object: empty, and the API server fills in the defaults of its fields.

    If rules apply to the object, its default is written out, because the rules are checked against the default itself.
    """
    if VALIDATIONS not in schema:
        return {}
    return {name: inside["default"] for name, inside in schema["properties"].items() if "default" in inside}


def _nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", [])


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema with references inlined and alternatives reduced to what a CRD can express."""
    rest = {k: v for k, v in schema.items() if k not in ("$ref", "anyOf", "const")}
    if "const" in schema:
        rest["enum"] = [schema["const"]]
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        return {**_resolved(target, definitions), **rest}
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        if len(choices) == 1:
            return {**_resolved(choices[0], definitions), **rest}
        if sorted(choice.get("type", "") for choice in choices) == ["integer", "string"]:
            return {**rest, "x-kubernetes-int-or-string": True}
        raise ValueError(f"a CustomResourceDefinition cannot choose between {choices}")
    return rest
