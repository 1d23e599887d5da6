"""Status condition as a value: type, status, reason and message, without times.

Built by ``reporting``, ``bellwether_load.controller.lifecycle`` and the controllers; the status writer keeps the
transition times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bellwether.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition without its times, which the status writer keeps (Kubernetes API conventions)."""

    type: str
    status: bool | None
    reason: Reason
    message: str


def of_type(conditions: Iterable[Condition], type_: str) -> Condition:
    """The condition of that type. Raises KeyError if there is none."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    raise KeyError(type_)
