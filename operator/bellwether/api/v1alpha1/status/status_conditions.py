"""Status conditions in Kubernetes' form. Filled from ``core.reporting``, read by people."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Reported, as_map


class ConditionStatus(StrEnum):
    """Unknown is a status of its own, not False."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Reported):
    """One aspect of the object's state, as last observed."""

    type: str = Field(
        min_length=1,
        max_length=316,
        pattern="^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$",
        description="Name of the condition.",
    )
    status: ConditionStatus = Field(description="Whether it holds.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the object that the condition was judged on."
    )
    last_transition_time: AwareDatetime = Field(description="When status last changed.")
    reason: str = Field(
        min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$", description="One CamelCase word for why."
    )
    message: str = Field(default="", max_length=2048, description="One sentence for a person.")


Conditions = Annotated[tuple[Condition, ...], Field(max_length=16, json_schema_extra=as_map("type"))]


def condition(conditions: tuple[Condition, ...], name: str) -> Condition | None:
    """The condition of that type, if the list has it."""
    return next((c for c in conditions if c.type == name), None)
