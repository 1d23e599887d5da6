"""Base model of the API: camelCase names, unknown fields rejected, rules checked in CEL and in Python.

A cross-field rule is written once, as CEL for the API server and as a predicate for objects that are never sent to one
(``bellwether demote --policy FILE``). ``structural_schema`` reads both from the models. The operator and the CLI read
objects through ``Object.read``, whose errors do not repeat strings from the object: they might be secrets.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from bellwether.api.v1alpha1.validation_errors import describe
from bellwether.foreign_text import QUOTED_CHARACTERS, quoted
from bellwether.ports.errors import Terminal

GROUP = "bellwether.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
VALIDATIONS = "x-kubernetes-validations"
RULE = "rule"
LONGEST_PATH = 120
"""Characters of the path of a field."""


class InvalidObject(Terminal):
    """An object that violates the API's rules. The message names each field and the remedy."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One validation rule that OpenAPI cannot express.

    The API server evaluates ``cel`` (KEP-2876), Python evaluates ``holds``; it is None where only the API server can
    decide, because only the API server knows the old object. ``field`` is the path of the invalid field, relative to
    the model.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""

    def schema(self) -> dict[str, str]:
        """The rule as an entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.cel, "message": self.message}
        if self.field:
            entry["fieldPath"] = f".{self.field}"
        return entry


@cache
def attribute_docs(of: type) -> dict[str, str]:
    """Docstrings of the attributes that a class declares, by name, from its source; empty for a class without."""
    try:
        source = inspect.getsource(of)
    except OSError:  # a class that a function has made
        return {}
    body = ast.parse(textwrap.dedent(source)).body[0]
    found = {}
    for attribute, text in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
        match attribute, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                found[name] = doc
    return found


class Model(BaseModel):
    """Base of everything that users write: an unknown field is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    rules: ClassVar[tuple[Rule, ...]] = ()
    moved: ClassVar[Mapping[str, str]] = {}
    """Remedies for fields that users may expect here and that are set elsewhere, by name."""

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        for rule in self.rules:
            if rule.holds is not None and not rule.holds(self):
                raise refusal(rule.message, rule.field)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.rules:
            schema[VALIDATIONS] = [rule.schema() for rule in cls.rules]
        names = {name: field.alias or name for name, field in cls.model_fields.items()}
        for name, text in ChainMap(*map(attribute_docs, cls.documented())).items():
            if names.get(name) in schema["properties"]:
                schema["properties"][names[name]]["description"] = text
        return schema

    @classmethod
    def documented(cls) -> Iterator[type]:
        """Classes whose attributes' docstrings are the descriptions of the fields, in a CRD; the first one counts."""
        yield from (base for base in cls.__mro__ if issubclass(base, Model))

    def body(self) -> dict[str, Any]:
        """The object as sent to the API: camelCase, JSON values, without unset optional fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Reported(Model):
    """Base of what Bellwether itself writes: unknown fields of a newer version are ignored, for downgrades."""

    model_config = ConfigDict(extra="ignore")


class Metadata(Reported):
    """The part of an object's metadata that Bellwether reads."""

    name: str = ""
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    deletion_timestamp: AwareDatetime | None = None
    finalizers: tuple[str, ...] = ()
    annotations: Mapping[str, str] = Field(default_factory=dict)
    labels: Mapping[str, str] = Field(default_factory=dict)


class Object(Reported):
    """Base of the kinds. ``longest_name`` limits ``metadata.name``, and the estimated CEL cost of rules on the name."""

    longest_name: ClassVar[int] = 253

    api_version: str = API_VERSION
    metadata: Metadata

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if len(self.metadata.name) > self.longest_name:
            raise refusal(f"must have at most {self.longest_name} characters: shorten it", "metadata.name")
        return self

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """Read an object of the API or of a file. Raises InvalidObject, which names every invalid field."""
        try:
            return cls.model_validate(body)
        except ValidationError as error:
            metadata = body.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
            raise InvalidObject(f"{cls.__name__} {name}: {explain(error, cls)}") from None


def explain(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """What is wrong, field by field, in one line, without repeating strings from the object.

    With the ``model`` of the object, an unknown field is answered with the name that was probably meant. Whole fields,
    as many as fit into what is quoted of others: the names of unknown fields are the author's.
    """
    text, left = "", error.error_count()
    for location, message in problems(error, model):
        said = f"{quoted(path(location), LONGEST_PATH)}: {quoted(message)}"
        if text and len(text) + len(said) > QUOTED_CHARACTERS:
            return f"{text}; and {left} more"
        text, left = f"{text}; {said}" if text else said, left - 1
    return text


def problems(
    error: ValidationError, model: type[BaseModel] | None = None, *, whole: bool = True
) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Location and message of each invalid field, as in ``explain``; without ``whole`` only of those that are there."""
    found = error.errors(include_url=False)
    for details in found:
        if details["type"] == "too_short" and any(_inside(other["loc"], details["loc"]) for other in found):
            continue  # invalid entries are not counted
        if not whole and details["type"] in ("missing", RULE):
            continue
        below = details.get("ctx", {}).get("field", "") if details["type"] == RULE else ""
        yield (*details["loc"], *(below.split(".") if below else [])), describe(details, model)


def _inside(location: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(location) > len(outer) and location[: len(outer)] == outer


def refusal(message: str, field: str) -> PydanticCustomError:
    """The error of a rule. ``field`` is the path of the invalid field, relative to the model of the rule."""
    return PydanticCustomError(RULE, "{message}", {"message": message, "field": field})


def path(location: tuple[int | str, ...]) -> str:
    """Path of a field as users write it: ``spec.kafka.bootstrapServers[0]``; pydantic marks invalid keys with [key]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]")
    return text.removeprefix(".") or "object"


@dataclass(frozen=True, slots=True)
class Matching:
    """Marks a string of 1 to ``longest`` characters that matches ``pattern``; ``message`` is the error."""

    pattern: str
    message: str
    longest: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.str_schema(min_length=1, max_length=self.longest)
        return core_schema.no_info_after_validator_function(self._check, text)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        escaped = self.pattern.replace("\\", "\\\\")
        rule = Rule(cel=f"self.matches('{escaped}')", message=self.message)
        return {**handler(schema), VALIDATIONS: [rule.schema()]}

    def _check(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(self.message)
        return text


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = sorted({str(v) for v in values if values.count(v) > 1})
    if twice:
        raise ValueError(f"contains {', '.join(twice)} twice: remove the duplicate")
    return values


DISTINCT = AfterValidator(_distinct)
"""Marks a list without duplicates for Python; ``AS_SET`` does the same for the API server."""


def distinct_by(field: str) -> AfterValidator:
    """Marks a list whose entries differ in a field for Python; ``as_map`` does the same for the API server."""

    def check(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        _distinct(tuple(getattr(entry, field) for entry in entries))
        return entries

    return AfterValidator(check)


AS_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}


def as_map(*keys: str) -> dict[str, Any]:
    """Marks a list whose entries are identified by ``keys``, so that each writer can own some of them."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def integer(default: Any, least: int, most: int, description: str | None = None) -> Any:
    """A bounded integer; a string that contains one is rejected, as by the API server."""
    return Field(default=default, ge=least, le=most, strict=True, description=description)


def timestamp(moment: datetime) -> str:
    """Format a time as Kubernetes does: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
