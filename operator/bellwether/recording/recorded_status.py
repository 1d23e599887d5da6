"""Recorded status: verdicts, flap counters and conditions that the operator wrote while a trace was recorded.

In: the ``said`` section: a broker's ``verdict`` and ``flapping`` as its status had them, and its condition ``Demoted``.
Out: verdicts and flap counters with which a replay starts, as after a take-over, and ``RecordedStatus`` values to
compare it with. Called by ``replay_run`` and ``replay_timeline``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from bellwether.api.v1alpha1.broker_health import BrokerVerdict, Flapping
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.recording.traces.merge_patch import Document, Json

T = TypeVar("T")
_VERDICT = (
    "state",
    "reason",
    "message",
    "since",
    "restartedAt",
    "resumedAt",
    "goodSeconds",
    "knownState",
    "explainedAt",
)
"""The part of a verdict on which the next one depends; the evidence is in the signals."""


@dataclass(frozen=True, slots=True)
class RecordedStatus:
    """One broker's health state and whether it is demoted."""

    state: str
    reason: str
    demoted: bool

    def __str__(self) -> str:
        return f"{self.state} {self.reason}{', demoted' if self.demoted else ''}"


def said_section(healths: Mapping[int, Mapping[str, Any]]) -> dict[str, Json]:
    """The operator's status in a trace: each broker's verdict and its condition ``Demoted``."""
    section: dict[str, Json] = {}
    for broker, status in healths.items():
        row: dict[str, Json] = {}
        if isinstance(status.get("verdict"), Mapping):
            row["verdict"] = {k: v for k in _VERDICT if (v := status["verdict"].get(k)) is not None}
        if isinstance(status.get("flapping"), Mapping):
            row["flapping"] = {k: v for k, v in status["flapping"].items() if v is not None}
        demoted = next((c for c in status.get("conditions") or () if c.get("type") == "Demoted"), None)
        if demoted is not None:
            row["demoted"] = {k: str(demoted.get(k, "")) for k in ("status", "reason", "message")}
        if row:
            section[str(broker)] = row
    return section


def verdicts_of(section: Document) -> dict[int, Verdict]:
    """The verdicts to carry on from; what cannot be read is left out, as after a take-over."""
    return _readable(section, lambda broker, row: BrokerVerdict.model_validate(row["verdict"]).verdict(broker))


def flaps_of(section: Document) -> dict[int, FlapCounter]:
    """The flap counters to carry on from; what cannot be read counts as none."""
    return _readable(section, lambda _, row: Flapping.model_validate(row["flapping"]).to_core())


def _readable(section: Document, read: Callable[[int, Document], T | None]) -> dict[int, T]:
    values = {}
    for broker, row in section.items():
        with suppress(KeyError, TypeError, ValueError, ValidationError):
            if (found := read(int(broker), row)) is not None:
                values[int(broker)] = found
    return values


def recorded_statuses(section: Document) -> dict[int, RecordedStatus]:
    """The operator's status of each broker."""
    statuses = {}
    for broker, row in section.items():
        verdict, demoted = row.get("verdict") or {}, row.get("demoted") or {}
        if verdict:
            statuses[int(broker)] = RecordedStatus(
                str(verdict.get("state")), str(verdict.get("reason")), demoted.get("status") == "True"
            )
    return statuses
