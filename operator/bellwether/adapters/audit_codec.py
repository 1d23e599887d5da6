"""Encode and decode audit entries as JSON values, many of them as compressed bytes.

Called by ``objects.audit_log`` (to keep them), the log, and ``bellwether history``. A field that a newer version wrote
is skipped: an audit log must stay readable.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from bellwether.adapters import bounded_json
from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, BrokerChange, MoveSummary, PlanStep
from bellwether.ports.errors import Terminal

UNPACKED_LIMIT = 16 << 20
"""Bytes of a segment: 100 entries, each with the most changes, evidence and text that an entry can have."""

_MOVES = TypeAdapter(MoveSummary)
_OUTCOME = TypeAdapter(AuditOutcome)
_QUARANTINES = TypeAdapter(tuple[QuarantineChange, ...])


def to_json(entry: AuditEntry) -> dict[str, Any]:
    """One entry; what is empty is left out."""
    row: dict[str, Any] = {"at": _time(entry.at), "clusterId": entry.cluster_id, "epoch": entry.epoch}
    if entry.occasion:
        row["occasion"] = entry.occasion
    if entry.changes:
        row["brokers"] = [_change(change) for change in entry.changes]
    if entry.more_changes:
        row["moreBrokers"] = entry.more_changes
    if entry.moves is not None:
        row["moves"] = _MOVES.dump_python(entry.moves, mode="json")
    if entry.plan is not None:
        step = entry.plan
        row["loadPlan"] = {
            "digest": step.digest,
            "approvedBy": step.approved_by,
            "takenUp": step.taken_up,
            "moves": step.moves,
            "ended": step.ended,
        }
    if entry.quarantines:
        row["quarantines"] = _QUARANTINES.dump_python(entry.quarantines, mode="json")
    if entry.outcome is not None:
        row["outcome"] = _OUTCOME.dump_python(entry.outcome, mode="json")
    if entry.times > 1:
        row |= {"times": entry.times, "last": _time(entry.last or entry.at)}
    return row


def from_json(row: Mapping[str, Any]) -> AuditEntry:
    """The inverse of ``to_json``. Raises one of ``bounded_json.DAMAGE`` when it is damaged."""
    return AuditEntry(
        at=datetime.fromisoformat(row["at"]),
        cluster_id=row["clusterId"],
        epoch=int(row["epoch"]),
        occasion=row.get("occasion", ""),
        changes=tuple(_changed(one) for one in row.get("brokers", ())),
        more_changes=int(row.get("moreBrokers", 0)),
        moves=_MOVES.validate_python(row["moves"]) if "moves" in row else None,
        plan=_stepped(row["loadPlan"]) if "loadPlan" in row else None,
        quarantines=_QUARANTINES.validate_python(row.get("quarantines", ())),
        outcome=_OUTCOME.validate_python(row["outcome"]) if "outcome" in row else None,
        times=int(row.get("times", 1)),
        last=datetime.fromisoformat(row["last"]) if "last" in row else None,
    )


def pack(entries: Iterable[AuditEntry]) -> bytes:
    """Entries as compressed bytes, in the order given."""
    rows = [to_json(entry) for entry in entries]
    return zlib.compress(json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode(), 6)


def unpack(data: bytes, where: str) -> list[AuditEntry]:
    """The inverse of ``pack``. Terminal when the bytes are damaged; ``where`` names the object."""
    try:
        return [from_json(row) for row in bounded_json.unpack(data, UNPACKED_LIMIT)]
    except bounded_json.DAMAGE as error:
        raise Terminal(f"{where}: this part of the audit trail is damaged ({type(error).__name__}: {error})") from error


def _change(change: BrokerChange) -> dict[str, Any]:
    row: dict[str, Any] = {
        "broker": change.broker,
        "became": "Demoted" if change.demoted else "Promoted",
        "word": change.word,
        "reason": change.reason,
        "message": change.message,
    }
    return {**row, "evidence": list(change.evidence)} if change.evidence else row


def _changed(row: Mapping[str, Any]) -> BrokerChange:
    return BrokerChange(
        broker=int(row["broker"]),
        demoted=row["became"] == "Demoted",
        word=row["word"],
        reason=row["reason"],
        message=row["message"],
        evidence=tuple(row.get("evidence", ())),
    )


def _stepped(row: Mapping[str, Any]) -> PlanStep:
    return PlanStep(row["digest"], row["approvedBy"], int(row["takenUp"]), int(row["moves"]), row["ended"])


def _time(moment: datetime) -> str:
    # To the last digit: with the epoch it identifies an entry.
    return moment.astimezone(UTC).isoformat()
