"""Strict JSON reader: each field must be present, of its type and within its limits, or an error names it.

In: the result of ``json.loads``. Out: plain values. Used for the values that are kept in files (``rebalance.problem``,
``rebalance.rebalance_plan``, ``settings.objective``); adapters name the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

EnumType = TypeVar("EnumType", bound=StrEnum)

MAX_INT64 = 2**63 - 1
"""Integers in files fit Arrow's and the JVM's 64 bits."""


class InvalidDocument(ValueError):
    """A document has a missing, unknown or invalid field. The message names the field and what is expected."""


class StrictObject:
    """Reader of one JSON object. ``finish`` refuses every field that was not read."""

    def __init__(self, document: object, where: str = "") -> None:
        if not isinstance(document, Mapping):
            raise InvalidDocument(f"{where or 'the document'} is {_kind(document)}: expected a JSON object")
        self._left = dict(document)
        self._where = f"{where}." if where else ""

    def text(self, name: str, *, empty: bool = False) -> str:
        """A string; non-empty unless ``empty``."""
        value = self._take(name)
        if not isinstance(value, str) or not (value or empty):
            raise self._invalid(name, value, "text" if empty else "text that is not empty")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A string or null."""
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._invalid(name, value, "text or null")
        return value

    def integer(self, name: str, least: int = 0) -> int:
        """An integer of at least ``least``."""
        value = self._take(name)
        if not _whole(value, least):
            raise self._invalid(name, value, f"a whole number, {least} or more")
        return int(value)

    def integer_or_none(self, name: str, least: int = 0) -> int | None:
        """An integer of at least ``least``, or null."""
        value = self._take(name)
        if value is None:
            return None
        if not _whole(value, least):
            raise self._invalid(name, value, f"null, or a whole number, {least} or more")
        return int(value)

    def number(self, name: str) -> float:
        """A finite number that is not negative."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise self._invalid(name, value, "a number, 0 or more")
        return float(value)

    def number_or_none(self, name: str) -> float | None:
        """A finite number that is not negative, or null."""
        if self._left.get(name, 0) is None:
            del self._left[name]
            return None
        return self.number(name)

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._invalid(name, value, "true or false")
        return value

    def timestamp(self, name: str) -> datetime:
        """A time in UTC with a resolution of one second, such as ``2026-11-21T12:00:00Z``."""
        value = self._take(name)
        try:
            return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except (TypeError, ValueError):
            raise self._invalid(name, value, "a time as in 2026-11-21T12:00:00Z") from None

    def enum(self, name: str, words: type[EnumType]) -> EnumType:
        """A value of an enumeration."""
        value = self._take(name)
        try:
            return words(value)
        except ValueError:
            raise self._invalid(name, value, f"one of {', '.join(words)}") from None

    def array(self, name: str) -> list[Any]:
        """A list."""
        value = self._take(name)
        if not isinstance(value, list):
            raise self._invalid(name, value, "a list")
        return value

    def nested(self, name: str) -> StrictObject:
        """An object within this one."""
        return StrictObject(self._take(name), f"{self._where}{name}")

    def nested_or_none(self, name: str) -> StrictObject | None:
        """An object within this one, or null."""
        if self._left.get(name, 0) is None:
            del self._left[name]
            return None
        return self.nested(name)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object whose names are data, returned unchanged."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise self._invalid(name, value, "a JSON object")
        return value

    def by_broker(self, name: str) -> dict[int, int]:
        """Integers of at least 0 by broker id."""
        raw, where = self.mapping(name), f"{self._where}{name}"
        if not all(broker.isdecimal() for broker in raw):
            raise InvalidDocument(f"{where}: each name must be the id of a broker")
        inner = StrictObject(raw, where)
        return {int(broker): inner.integer(broker) for broker in sorted(raw)}

    def constant(self, name: str, wanted: object) -> None:
        """A field that must have one value, such as the format version."""
        value = self._take(name)
        if value != wanted or isinstance(value, bool):
            raise self._invalid(name, value, f"{wanted!r}, the only one that this version knows")

    def finish(self) -> None:
        """Refuse fields that were not read, so that a misspelled name is not taken for a default."""
        if self._left:
            names = ", ".join(f"{self._where}{n}" for n in sorted(self._left))
            raise InvalidDocument(f"unknown: {names}: written by another version, or misspelled")

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise InvalidDocument(f"{self._where}{name} is missing")
        return self._left.pop(name)

    def _invalid(self, name: str, value: object, wanted: str) -> InvalidDocument:
        return InvalidDocument(f"{self._where}{name} is {_kind(value)}: expected {wanted}")


def json_by_broker(values: Mapping[int, int]) -> dict[str, int]:
    """Integers by broker id as a JSON object, which ``StrictObject.by_broker`` reads."""
    return {str(broker): value for broker, value in sorted(values.items())}


def format_timestamp(at: datetime) -> str:
    """A time in the format of the stored documents."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_INT64


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        said = repr(value)
        return said if len(said) <= 80 else f"{said[:77]}..."
    return "a list" if isinstance(value, list) else "an object"
