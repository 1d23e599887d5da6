"""Marks of settings that users write, next to their types and defaults in the dataclasses of this package.

``api.v1alpha1.core_models`` makes the fields of the custom resource from them, so each setting is written once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """Marks a field, as in ``Annotated[int, Setting(1, 3600)]``; ``kubectl explain`` shows its docstring.

    ``least`` and ``most`` are inclusive bounds of an integer.
    """

    least: int | None = None
    most: int | None = None


SETTING = Setting()
"""Marks a setting without bounds."""

INTERNAL = "internal"
"""Marks a setting that the API does not have: one value fits every cluster, and only tests pass another one."""
