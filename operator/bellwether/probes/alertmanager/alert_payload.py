"""Parse the payload of an Alertmanager webhook, which is not trusted.

In: a body whose length is bounded already. Out: the alerts in it, each with its labels, or ValueError with what is
wrong in one bounded line. The format is version 4 of Alertmanager's webhook. Called by ``alert_receiver``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bellwether.probes.plugins.plugin_window import worded

ALERT_LIMIT = 10_000
_SUMMARY_LIMIT = 160


@dataclass(frozen=True, slots=True)
class Alert:
    """One instance of an alert: ``fingerprint`` tells it from the others of its name."""

    name: str
    fingerprint: str
    firing: bool
    labels: Mapping[str, str]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Notification:
    """One body. ``left_out`` counts the alerts that Alertmanager itself cut off (``max_alerts``)."""

    alerts: tuple[Alert, ...]
    left_out: int = 0


class _Alert(BaseModel):
    model_config = ConfigDict(strict=True)

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    fingerprint: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,64}$")]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True)

    version: Literal["4"]
    alerts: Annotated[list[_Alert], Field(max_length=ALERT_LIMIT)]
    truncatedAlerts: Annotated[int, Field(ge=0)] = 0  # noqa: N815 - Alertmanager's word


def read(body: bytes) -> Notification:
    """The alerts of one body. Raises ValueError."""
    try:
        said = _Body.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:4])
        raise ValueError(worded(f"{where or 'the body'}: {first['msg']}", 200)) from None
    return Notification(
        tuple(
            Alert(
                one.labels.get("alertname", ""),
                one.fingerprint,
                one.status == "firing",
                one.labels,
                worded(one.annotations.get("summary") or one.annotations.get("description") or "", _SUMMARY_LIMIT),
            )
            for one in said.alerts
        ),
        said.truncatedAlerts,
    )
