"""API models that are made from classes of the core: settings that users write, and what a status shows.

A setting is declared in the core, with bounds and docstring (``Setting``); its model has the fields from there. A
model of a status declares what the API shows; a field has the value of the same name of the core, unless ``Of`` says
which one, and in what unit, as Kubernetes APIs have no floating point numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, get_args, get_type_hints

import pydantic

from bellwether.api.v1alpha1.base_model import Model, Reported
from bellwether.api.v1alpha1.validation_errors import models_in
from bellwether.core.settings.setting import INTERNAL, Setting

C = TypeVar("C")
_LIMITS = ("ge", "le", "max_length")


class SettingsModel(Model, Generic[C]):
    """Base of a model of ``C``, as in ``class StorageLatency(SettingsModel[detection.StorageLatency])``.

    A field whose type is such a dataclass, with a ``Setting``, is a model of that dataclass.

    A field that the API writes in another way than the core is declared again; it keeps its place, and ``to_core``
    converts it if its value is a model.
    """

    core_class: ClassVar[type]

    def __class_getitem__(cls, settings: Any) -> Any:
        """The base with the fields of a dataclass. Called once for each model."""
        hints = get_type_hints(settings, include_extras=True)
        public = [one for one in fields(settings) if INTERNAL not in get_args(hints[one.name])]
        found: Any = {one.name: _setting(one, hints[one.name]) for one in public}
        made = pydantic.create_model(f"{settings.__name__}Settings", __base__=cls, **found)
        made.core_class = settings
        return made

    @classmethod
    def documented(cls) -> Iterator[type]:
        """The model with the fields that are declared again, and the dataclass."""
        yield from super().documented()
        yield cls.core_class

    def to_core(self) -> C:
        """Convert to the settings of the core."""
        values = {name: value.to_core() if isinstance(value, SettingsModel) else value for name, value in self}
        made: C = self.core_class(**values)
        return made


def _setting(one: Field[Any], hint: Any) -> tuple[Any, Any]:
    """Type and pydantic field of a setting. Integers are strict: no strings that contain one, as in the API server."""
    options: dict[str, Any] = {} if one.default is MISSING else {"default": one.default}
    marker = next((part for part in get_args(hint) if isinstance(part, Setting)), None)
    if marker is None:
        return hint, pydantic.Field(**options)
    plain = get_args(hint)[0]
    if is_dataclass(plain):
        base: Any = SettingsModel[plain]  # type: ignore[valid-type]
        model: Any = pydantic.create_model(getattr(plain, "__name__", ""), __base__=base)
        return model, pydantic.Field(default_factory=model)
    options |= {"ge": marker.least, "le": marker.most, "strict": True if plain in (int, bool) else None}
    return plain, pydantic.Field(**options)


@dataclass(frozen=True, slots=True)
class Of:
    """Where the value of a field comes from: a path of attributes of the core's value; its own name if empty.

    With ``times`` a number is multiplied, rounded and kept within the field's bounds.
    """

    path: str = ""
    times: int = 0


class StatusModel(Reported, Generic[C]):
    """Base of a model of ``C``, a dataclass or named tuple."""

    core_class: ClassVar[Any]

    def __class_getitem__(cls, core: Any) -> Any:
        """The base for a class of the core. Called once for each model."""
        made = pydantic.create_model(f"{core.__name__}Model", __base__=cls)
        made.core_class = core
        return made

    @classmethod
    def of(cls, core: C, /, **others: Any) -> Self:
        """Show a value of the core; ``others`` are fields by name that are not taken from it.

        Texts and lists are cut to the length that the API allows; what is None has the field's default.
        """
        for one in _columns(cls):
            if one.name not in others:
                value = one.show(core)
                if value is not None:
                    others[one.name] = value
        return cls(**others)

    def to_core(self, **others: Any) -> C:
        """Convert to the core's value; ``others`` are fields of it that the API does not have, or not in full."""
        for one in _columns(type(self)):
            if one.target and one.target not in others:
                value = getattr(self, one.name)
                others[one.target] = value if value is None or one.read is None else one.read(value)
        made: C = self.core_class(**others)
        return made


class _Column(NamedTuple):
    """A field: its name, the field of the core that it is read back to, if any, and the conversions, if any."""

    name: str
    target: str
    show: Callable[[Any], Any]
    read: Callable[[Any], Any] | None


@cache
def _columns(model: type[StatusModel[Any]]) -> tuple[_Column, ...]:
    core_fields = get_type_hints(model.core_class)
    return tuple(_column(name, field, core_fields) for name, field in model.model_fields.items())


def _column(name: str, field: Any, core_fields: dict[str, Any]) -> _Column:
    of = next((part for part in field.metadata if isinstance(part, Of)), Of())
    limits = {key: getattr(part, key) for part in field.metadata for key in _LIMITS if hasattr(part, key)}
    nested: Any = next((m for m in models_in(field.annotation) if issubclass(m, StatusModel)), None)
    path = (of.path or name).split(".")

    def show(value: Any) -> Any:
        for part in path:
            if value is not None:
                value = getattr(value, part)
        return None if value is None else convert(value)

    def convert(value: Any) -> Any:
        if isinstance(value, str):
            longest = limits.get("max_length", math.inf)
            return value if len(value) <= longest else f"{value[: longest - 1]}…"
        if type(value) is tuple:
            kept = value[: limits.get("max_length")]
            return tuple(map(nested.of, kept)) if nested is not None else kept
        if nested is not None:
            return nested.of(value)
        if of.times:
            if not math.isfinite(value) and not field.is_required():
                return None
            return round(min(limits.get("le", math.inf), max(limits.get("ge", -math.inf), value * of.times)))
        return value

    def read(value: Any) -> Any:
        if nested is not None:
            return tuple(one.to_core() for one in value) if isinstance(value, tuple) else value.to_core()
        return value / of.times

    converted = nested is not None or of.times
    target = path[0] if len(path) == 1 and path[0] in core_fields else ""
    return _Column(name, target, show, read if converted else None)
