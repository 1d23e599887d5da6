"""Status conditions in Kubernetes' form, filled from ``core.reporting``, and types of fields that every status has."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Reported, as_map

REASON_LIMIT = 64
MESSAGE_LIMIT = 1024

Message = Annotated[str, Field(max_length=MESSAGE_LIMIT)]
ReasonName = Annotated[str, Field(min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$")]
BrokerId = Annotated[int, Field(ge=0, le=2147483647)]
Count = Annotated[int, Field(ge=0)]


class ConditionStatus(StrEnum):
    """Status of a condition. Unknown is different from False."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Reported):
    """One aspect of the object's state at the last observation."""

    type: str = Field(min_length=1, max_length=316, pattern="^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$")
    """Type of the condition."""
    status: ConditionStatus
    """True, False or Unknown."""
    observed_generation: int | None = Field(default=None, ge=0)
    """metadata.generation that the condition is based on."""
    last_transition_time: AwareDatetime
    """Time when status last changed."""
    reason: str = Field(min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$")
    """Reason for the status, in CamelCase."""
    message: str = Field(default="", max_length=2048)
    """Explanation of the status, in one sentence."""


NO_OPERATOR = "NoOperator"
"""Reason of the condition that the API server itself shows, as the default of a status that was never written."""

UNSEEN = {
    "type": "Ready",
    "status": "Unknown",
    "reason": NO_OPERATOR,
    "message": "no operator has reconciled this policy yet: check that one is running and watches its namespace",
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}

UNUSED = {
    **UNSEEN,
    "reason": "NoProber",
    "message": "no prober has used this source yet: name it in spec.detection.signalSources of a policy, and run a"
    " prober of kind Prometheus, or of the plug-in, for its namespace",
}

UNREAD = {
    **UNSEEN,
    "message": "no operator has used this rebalance yet: name an existing policy of the namespace in spec.policy, and"
    " check that an operator is running and watches the namespace",
}


def _without_default(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """What an operator wrote: to a reader of the status, the API server's default is no condition."""
    return tuple(c for c in conditions if c.reason != NO_OPERATOR)


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16, json_schema_extra=as_map("type")),
    AfterValidator(_without_default),
]


def condition(conditions: tuple[Condition, ...], name: str) -> Condition | None:
    """The condition of that type; None if there is none."""
    return next((c for c in conditions if c.type == name), None)


def true_condition(conditions: tuple[Condition, ...], name: str) -> Condition | None:
    """The condition of that type if its status is True; else None."""
    found = condition(conditions, name)
    return found if found is not None and str(found.status) == "True" else None
