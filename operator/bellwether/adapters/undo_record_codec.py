"""Encode and decode an undo record as bytes, for every store of undo records.

In: ``core.model.undo_record`` values. Out: compact JSON, zlib-compressed where a store asks for it, with a format
version. Called by ``undo_record_store`` (by shards) and ``undo_record_file`` (whole). A newer format is refused.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import (
    FORMAT_VERSION,
    ApplicationEnd,
    Cause,
    DemotedBroker,
    EntryState,
    PlanApplication,
    SkippedPartition,
    UndoEntry,
    UndoRecord,
)
from bellwether.ports.errors import Terminal

# Level 6 saves a fifth of the space and takes four times as long.
_LEVEL = 1

_CODES = {EntryState.INTENDED: "I", EntryState.DISPLACED: "D", EntryState.RESTORING: "R", EntryState.RESTORED: "T"}
_STATES = {code: state for state, code in _CODES.items()}


def check_format(version: object, where: str) -> None:
    """Refuse (Terminal) what this program cannot read; ``where`` names the object or file in the message."""
    if not isinstance(version, int) or version < 1:
        raise Terminal(f"{where}: not an undo record: format version {version!r} is not a positive number")
    if version > FORMAT_VERSION:
        raise Terminal(
            f"{where}: the undo record has format version {version}, this program reads up to {FORMAT_VERSION}: "
            "run the newer version of Bellwether that wrote it"
        )


def pack_entries(entries: Iterable[tuple[PartitionKey, UndoEntry]]) -> bytes:
    """Entries as compressed bytes; the same entries give the same bytes in whatever order they come."""
    return zlib.compress(_dump(_entries_to_json(entries)), _LEVEL)


def unpack_entries(data: bytes, where: str) -> dict[PartitionKey, UndoEntry]:
    """The inverse of ``pack_entries``. Terminal when the bytes are damaged."""
    try:
        return _entries_from_json(json.loads(zlib.decompress(data)))
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise _damaged(where, error) from error


def pack_demoted(demoted: Mapping[int, DemotedBroker]) -> str:
    """The demoted brokers as JSON text, in order of broker id."""
    return _dump(_demoted_to_json(demoted)).decode()


def unpack_demoted(text: str, where: str) -> dict[int, DemotedBroker]:
    """The inverse of ``pack_demoted``. Terminal when the text is damaged."""
    try:
        return _demoted_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(where, error) from error


def pack_returning(returning: Mapping[int, ReturningBroker]) -> str:
    """The brokers on their way back as JSON text, in order of broker id."""
    return _dump(_returning_to_json(returning)).decode()


def unpack_returning(text: str, where: str) -> dict[int, ReturningBroker]:
    """The inverse of ``pack_returning``. Terminal when the text is damaged."""
    try:
        return _returning_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(where, error) from error


def pack_application(application: PlanApplication) -> str:
    """How far a load plan has come, as JSON text."""
    return _dump(_application_to_json(application)).decode()


def unpack_application(text: str, where: str) -> PlanApplication:
    """The inverse of ``pack_application``. Terminal when the text is damaged."""
    try:
        return _application_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(where, error) from error


def export_record(record: UndoRecord) -> bytes:
    """A whole record as one JSON document (which is YAML, too), for files and for people.

    ``rebalance`` and ``returning`` are present only if they are not empty: versions before them pass
    them over, and give a broker that comes back everything at once.
    """
    document: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "clusterId": record.cluster_id,
        "epoch": record.epoch,
        "demoted": _demoted_to_json(record.demoted),
        "topics": _entries_to_json(record.entries.items()),
    }
    if record.application is not None:
        document["rebalance"] = _application_to_json(record.application)
    if record.returning:
        document["returning"] = _returning_to_json(record.returning)
    return _dump(document) + b"\n"


def import_record(data: bytes, where: str) -> UndoRecord:
    """The inverse of ``export_record``. Terminal when the document is damaged or newer than this program."""
    try:
        document = json.loads(data)
        check_format(document["format"], where)
        record = UndoRecord(
            cluster_id=str(document["clusterId"]),
            epoch=int(document["epoch"]),
            demoted=_demoted_from_json(document["demoted"]),
            entries=_entries_from_json(document["topics"]),
            application=_application_from_json(document["rebalance"]) if "rebalance" in document else None,
            returning=_returning_from_json(document.get("returning", [])),
        )
        _check_numbers(record)
        return record
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise _damaged(where, error) from error


def _check_numbers(record: UndoRecord) -> None:
    """TypeError unless brokers and partitions are numbers: a document comes from a person's hands."""
    brokers = [*record.demoted, *record.returning]
    for key, entry in record.entries.items():
        brokers += [key.partition, *entry.baseline, *entry.written]
        brokers += [broker for order in entry.earlier for broker in order]
    wrong = next((b for b in brokers if type(b) is not int), None)
    if wrong is not None:
        raise TypeError(f"{wrong!r} is not the number of a broker or partition")


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _damaged(where: str, error: Exception) -> Terminal:
    return Terminal(
        f"{where}: the undo record is damaged ({type(error).__name__}: {error}): import an exported copy, or compare "
        "the replica orders by hand before deleting it"
    )


def _entries_to_json(entries: Iterable[tuple[PartitionKey, UndoEntry]]) -> list[Any]:
    # By topic, then partition: neighbours look alike, which is what the compressor lives on.
    topics: dict[tuple[str, str], list[Any]] = {}
    for key, entry in entries:
        row: list[Any] = [key.partition, _CODES[entry.state], entry.baseline, entry.written, entry.earlier]
        if entry.finished_at is not None or entry.contests or entry.contested_at is not None:
            row += [_time_or_none(entry.finished_at), entry.contests, _time_or_none(entry.contested_at)]
        topics.setdefault((key.topic_id, entry.topic), []).append(row)
    return [[topic_id, topic, sorted(rows, key=itemgetter(0))] for (topic_id, topic), rows in sorted(topics.items())]


def _entries_from_json(topics: Any) -> dict[PartitionKey, UndoEntry]:
    entries: dict[PartitionKey, UndoEntry] = {}
    for topic_id, topic, rows in topics:
        for partition, code, baseline, written, earlier, *rare in rows:
            finished, contests, contested = rare or (None, 0, None)
            entries[PartitionKey(topic_id, partition)] = UndoEntry(
                topic=topic,
                baseline=tuple(baseline),
                written=tuple(written),
                earlier=tuple(tuple(order) for order in earlier),
                state=_STATES[code],
                finished_at=datetime.fromisoformat(finished) if finished else None,
                contests=contests,
                contested_at=datetime.fromisoformat(contested) if contested else None,
            )
    return entries


def _demoted_to_json(demoted: Mapping[int, DemotedBroker]) -> list[Any]:
    return [
        {
            "broker": one.broker,
            **_cause_to_json(one.cause),
            "reason": one.reason,
            "message": one.message,
            "since": _time_to_text(one.since),
        }
        for _, one in sorted(demoted.items())
    ]


def _cause_to_json(cause: Cause) -> dict[str, str]:
    """Earlier versions read a drain as an override and skip its purpose."""
    if cause is Cause.MAINTENANCE:
        return {"cause": Cause.OVERRIDE.value, "purpose": cause.value}
    return {"cause": cause.value}


def _demoted_from_json(rows: Any) -> dict[int, DemotedBroker]:
    return {
        row["broker"]: DemotedBroker(
            broker=row["broker"],
            cause=Cause(row.get("purpose", row["cause"])),
            reason=row["reason"],
            message=row["message"],
            since=datetime.fromisoformat(row["since"]),
        )
        for row in rows
    }


def _returning_to_json(returning: Mapping[int, ReturningBroker]) -> list[Any]:
    return [
        {
            "broker": one.broker,
            "share": one.share,
            "since": _time_to_text(one.since),
            "wavedAt": _time_to_text(one.waved_at),
            "coming": one.trigger.value,
        }
        for _, one in sorted(returning.items())
    ]


def _returning_from_json(rows: Any) -> dict[int, ReturningBroker]:
    return {
        row["broker"]: ReturningBroker(
            broker=row["broker"],
            share=_share(row["share"]),
            since=datetime.fromisoformat(row["since"]),
            waved_at=datetime.fromisoformat(row["wavedAt"]),
            trigger=RestorationTrigger(row["coming"]),
        )
        for row in rows
    }


def _share(value: object) -> int:
    if type(value) is not int or not 0 <= value <= 100:
        raise ValueError(f"{value!r} is not a share from 0 to 100 percent")
    return value


def _application_to_json(application: PlanApplication) -> dict[str, Any]:
    return {
        "digest": application.digest,
        "moves": application.moves,
        "since": _time_to_text(application.since),
        "wavedAt": _time_to_text(application.waved_at),
        "takenUp": application.taken_up,
        "left": dict(sorted(application.left.items())),
        "leftLoad": application.left_load,
        "sample": [[one.topic, one.partition, one.reason] for one in application.sample],
        "ended": application.ended.value if application.ended is not None else "",
        "message": application.message,
    }


def _application_from_json(row: Any) -> PlanApplication:
    return PlanApplication(
        digest=row["digest"],
        moves=row["moves"],
        since=datetime.fromisoformat(row["since"]),
        waved_at=datetime.fromisoformat(row["wavedAt"]),
        taken_up=row["takenUp"],
        left=dict(row["left"]),
        left_load=row["leftLoad"],
        sample=tuple(SkippedPartition(topic, partition, reason) for topic, partition, reason in row["sample"]),
        ended=ApplicationEnd(row["ended"]) if row["ended"] else None,
        message=row["message"],
    )


def _time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else _time_to_text(moment)


def _time_to_text(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError(f"a time without time zone cannot be recorded: {moment}")
    return moment.astimezone(UTC).isoformat()
