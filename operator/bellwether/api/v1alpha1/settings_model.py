"""API models whose fields are the settings of a core dataclass, with its defaults, bounds and descriptions."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

import pydantic

from bellwether.api.v1alpha1.base_model import Model
from bellwether.core.settings.field_doc import INTERNAL, FieldDoc

S = TypeVar("S")


class SettingsModel(Model, Generic[S]):
    """Base of a model of ``S``, as in ``class StorageLatency(SettingsModel[detection.StorageLatency])``.

    A field that the API writes in another way than the core is declared again; it keeps its place, and ``to_core``
    converts it if its value is a model.
    """

    core_class: ClassVar[type]

    def __class_getitem__(cls, settings: Any) -> Any:
        """The base with the fields of a dataclass. Called once for each model."""
        hints = get_type_hints(settings, include_extras=True)
        public = [one for one in fields(settings) if INTERNAL not in get_args(hints[one.name])]
        found: Any = {one.name: _field(one, hints[one.name]) for one in public}
        made = pydantic.create_model(f"{settings.__name__}Settings", __base__=cls, **found)
        made.core_class = settings
        return made

    def to_core(self) -> S:
        """Convert to the settings of the core."""
        values = {name: value.to_core() if isinstance(value, SettingsModel) else value for name, value in self}
        made: S = self.core_class(**values)
        return made


def _field(one: Field[Any], hint: Any) -> tuple[Any, Any]:
    """Type and pydantic field of a setting. Integers are strict: no strings that contain one, as in the API server."""
    options: dict[str, Any] = {} if one.default is MISSING else {"default": one.default}
    marker = next((part for part in get_args(hint) if isinstance(part, FieldDoc)), None)
    if marker is None:
        return hint, pydantic.Field(**options)
    plain = get_args(hint)[0]
    options |= {"description": marker.description, "ge": marker.least, "le": marker.most}
    options["strict"] = True if plain in (int, bool) else None
    return plain, pydantic.Field(**options)
