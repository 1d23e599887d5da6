"""Description and bounds of a setting that users write, next to its type and default in a dataclass of this package.

``api.v1alpha1.core_models`` makes the fields of the custom resource from them, so each setting is written once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """Marks a field, as in ``Annotated[int, FieldDoc("Seconds between two probes.", 1, 3600)]``.

    ``description`` is what ``kubectl explain`` shows; ``least`` and ``most`` are inclusive bounds of an integer.
    """

    description: str
    least: int | None = None
    most: int | None = None


INTERNAL = FieldDoc("")
"""Marks a setting that the API does not have: one value fits every cluster, and only tests pass another one."""
