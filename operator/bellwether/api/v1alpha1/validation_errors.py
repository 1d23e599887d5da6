"""Validation messages of the API: what is wrong with a field, and the remedy, in place of pydantic's own texts.

Values are not repeated, because a string might be a secret; numbers are. Called by ``base_model.explain``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

_TEXTS = {
    "missing": "is required: set it",
    "greater_than_equal": "is {input}: must be at least {ge}",
    "less_than_equal": "is {input}: must be at most {le}",
    "too_long": "has {actual_length} entries: at most {max_length} are allowed",
    "too_short": "has {actual_length} entries: at least {min_length} must be set",
    "string_too_long": "is too long: at most {max_length} characters are allowed",
    "string_too_short": "is too short: at least {min_length} characters are required",
    "bool_type": "must be true or false, without quotes",
    "string_type": "must be a string: put it in quotes",
    "model_type": "must be an object with fields",
    "tuple_type": "must be a list",
    "timezone_aware": "has no time zone: write it as in 2030-01-01T00:00:00Z",
    "datetime_type": "must be a time as in 2030-01-01T00:00:00Z",
    "datetime_parsing": "must be a time as in 2030-01-01T00:00:00Z",
    "datetime_from_date_parsing": "must be a time as in 2030-01-01T00:00:00Z",
}
"""Messages by pydantic's type of error, with the fields of its context; other types keep pydantic's message."""

LONGEST_NAME = 64
"""Characters that are compared with the names of fields, which takes time by their square."""

_QUOTED = re.compile("'([^']*)'")
_UNIT = re.compile("(Milliseconds|Seconds|Bytes|Percent)$")


def _integer_wanted(field: str, given: object) -> str:
    unit = _UNIT.search(field)
    text = "must be an integer" + (f" of {unit[1].lower()}" if unit else "")
    if not isinstance(given, str):
        return text
    return text + (", without quotes" if given.strip().isdigit() else ", without a unit")


def describe(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    """What is wrong with the field and what to do; ``model`` is the model of the whole object, if it is known."""
    kind, context, given = error["type"], error.get("ctx", {}), error.get("input")
    if kind == "extra_forbidden":
        parent = model_at(model, error["loc"][:-1])
        moved = getattr(parent, "moved", {}).get(error["loc"][-1])
        if moved is not None:
            return str(moved)
        return f"no such field{nearest(error['loc'][-1], _field_names(parent), otherwise=': remove it')}"
    if kind in ("enum", "literal_error"):
        expected = str(context.get("expected", ""))
        return f"must be {expected}{nearest(given, _QUOTED.findall(expected))}"
    if kind in ("greater_than_equal", "less_than_equal") and not isinstance(given, int | float):
        return error["msg"]
    if kind == "int_type":
        return _integer_wanted(str(error["loc"][-1]), given)
    if kind in _TEXTS:
        return _TEXTS[kind].format(**{**context, "input": given})
    return error["msg"].removeprefix("Value error, ")


def nearest(given: Any, names: Iterable[str], *, otherwise: str = "") -> str:
    """The name that was probably meant, for the end of a message."""
    by_lower_case = {name.lower(): name for name in names}
    nearest = difflib.get_close_matches(str(given)[:LONGEST_NAME].lower(), by_lower_case, n=1)
    return f" (did you mean {by_lower_case[nearest[0]]}?)" if nearest else otherwise


def model_at(model: type[BaseModel] | None, location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model at that place of an object of ``model``; None if there is none."""
    in_mapping = False
    for part in location:
        if model is None or isinstance(part, int):
            continue
        if in_mapping:  # the part is a key, the value has the model
            in_mapping = False
            continue
        annotations = [f.annotation for name, f in model.model_fields.items() if part in (name, f.alias)]
        in_mapping = any(get_origin(annotation) is dict for annotation in annotations)
        model = next((found for annotation in annotations for found in models_in(annotation)), None)
    return model


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _field_names(model: type[BaseModel] | None) -> Iterator[str]:
    if model is not None:
        for name, field in model.model_fields.items():
            yield field.alias or name
