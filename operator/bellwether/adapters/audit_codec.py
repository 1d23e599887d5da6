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

from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, BrokerChange, MoveSummary, PlanStep
from bellwether.ports.errors import Terminal


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
        moves = entry.moves
        row["moves"] = {
            "topics": moves.topics,
            "reorders": moves.reorders,
            "elections": moves.elections,
            "restores": moves.restores,
            "digest": moves.digest,
            "leaving": {str(broker): n for broker, n in moves.leaving.items()},
            "coming": {str(broker): n for broker, n in moves.coming.items()},
            "sample": list(moves.sample),
        }
    if entry.plan is not None:
        step = entry.plan
        row["loadPlan"] = {
            "digest": step.digest,
            "approvedBy": step.approved_by,
            "takenUp": step.taken_up,
            "moves": step.moves,
            "ended": step.ended,
        }
    if entry.outcome is not None:
        done = entry.outcome
        row["outcome"] = {
            "reordered": done.reordered,
            "elected": done.elected,
            "touched": done.touched,
            "held": dict(done.held),
            "stopped": done.stopped,
        }
    if entry.times > 1:
        row |= {"times": entry.times, "last": _time(entry.last or entry.at)}
    return row


def from_json(row: Mapping[str, Any]) -> AuditEntry:
    """The inverse of ``to_json``. Raises KeyError, TypeError or ValueError when it is damaged."""
    return AuditEntry(
        at=datetime.fromisoformat(row["at"]),
        cluster_id=row["clusterId"],
        epoch=int(row["epoch"]),
        occasion=row.get("occasion", ""),
        changes=tuple(_changed(one) for one in row.get("brokers", ())),
        more_changes=int(row.get("moreBrokers", 0)),
        moves=_moved(row["moves"]) if "moves" in row else None,
        plan=_stepped(row["loadPlan"]) if "loadPlan" in row else None,
        outcome=_done(row["outcome"]) if "outcome" in row else None,
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
        return [from_json(row) for row in json.loads(zlib.decompress(data))]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
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


def _moved(row: Mapping[str, Any]) -> MoveSummary:
    return MoveSummary(
        topics=int(row["topics"]),
        reorders=int(row["reorders"]),
        elections=int(row["elections"]),
        restores=int(row["restores"]),
        digest=row["digest"],
        leaving={int(broker): int(n) for broker, n in row["leaving"].items()},
        coming={int(broker): int(n) for broker, n in row["coming"].items()},
        sample=tuple(row["sample"]),
    )


def _stepped(row: Mapping[str, Any]) -> PlanStep:
    return PlanStep(row["digest"], row["approvedBy"], int(row["takenUp"]), int(row["moves"]), row["ended"])


def _done(row: Mapping[str, Any]) -> AuditOutcome:
    return AuditOutcome(
        int(row["reordered"]), int(row["elected"]), int(row["touched"]), dict(row["held"]), row["stopped"]
    )


def _time(moment: datetime) -> str:
    # To the last digit: with the epoch it identifies an entry.
    return moment.astimezone(UTC).isoformat()
