"""Encode and decode an undo record as bytes, for every store of undo records.

In: ``core.model.undo_record`` values. Out: compact JSON, zlib-compressed where a store asks for it, with a format
version. Called by ``undo_record_store`` (by shards) and ``undo_record_file`` (whole). A newer format is refused.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

from bellwether.adapters import bounded_json
from bellwether.adapters.record_fields import read_count, read_id, read_text, read_time, short, time_or_none, time_text
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import (
    FORMAT_VERSION,
    ApplicationEnd,
    BrokenLink,
    Cause,
    DemotedBroker,
    EntryState,
    Link,
    PlanApplication,
    SentOrder,
    SkippedPartition,
    UndoEntry,
    UndoRecord,
)
from bellwether.ports.errors import Terminal

T = TypeVar("T")

PART_ENTRIES = 100_000
"""Entries of one compressed part: four times a shard of 200,000 partitions. As objects they take about 40 MB."""

DOCUMENT_LIMIT = 64 << 20
"""Bytes of a whole record as one document: eight parts of the largest size."""

_DOCUMENT_ENTRIES = 8 * PART_ENTRIES
_MOST_OUTSTANDING = 64
_MOST_REPLICAS = 1000  # of one partition: Kafka's protocol would allow 32,767

# Level 6 saves a fifth of the space and takes four times as long.
_LEVEL = 1

_CODES = {EntryState.INTENDED: "I", EntryState.DISPLACED: "D", EntryState.RESTORING: "R", EntryState.RESTORED: "T"}
_STATES = {code: state for state, code in _CODES.items()}
_PENDING = (_CODES[EntryState.INTENDED], _CODES[EntryState.RESTORING])


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
    """Entries as compressed bytes; the same entries give the same bytes in whatever order they come.

    Terminal when they are more than ``unpack_entries`` would read: what cannot be read back is not written.
    """
    found = list(entries)
    text = _dump(_entries_to_json(found))
    if len(found) > PART_ENTRIES or len(text) > bounded_json.UNPACKED_LIMIT:
        raise Terminal(
            f"this part of the undo record would have {len(found)} partitions in {len(text)} bytes; at most"
            f" {PART_ENTRIES} in {bounded_json.UNPACKED_LIMIT} bytes are supported: demote fewer brokers at a time"
        )
    return zlib.compress(text, _LEVEL)


def unpack_entries(data: bytes, where: str) -> dict[PartitionKey, UndoEntry]:
    """The inverse of ``pack_entries``. Terminal when the bytes are damaged."""
    try:
        return _entries_from_json(bounded_json.unpack(data), PART_ENTRIES)
    except bounded_json.DAMAGE as error:
        raise _damaged(where, error) from error


def pack_demoted(demoted: Mapping[int, DemotedBroker]) -> str:
    """The demoted brokers as JSON text, in order of broker id."""
    return _dump(_demoted_to_json(demoted)).decode()


def unpack_demoted(text: str, where: str) -> dict[int, DemotedBroker]:
    """The inverse of ``pack_demoted``. Terminal when the text is damaged."""
    return _unpacked(text, where, _demoted_from_json)


def pack_returning(returning: Mapping[int, ReturningBroker]) -> str:
    """The brokers on their way back as JSON text, in order of broker id."""
    return _dump(_returning_to_json(returning)).decode()


def unpack_returning(text: str, where: str) -> dict[int, ReturningBroker]:
    """The inverse of ``pack_returning``. Terminal when the text is damaged."""
    return _unpacked(text, where, _returning_from_json)


def pack_log_dirs(log_dirs: Mapping[LogDir, DemotedLogDir]) -> str:
    """The demoted log directories as JSON text, in order of broker id and path."""
    return _dump(_log_dirs_to_json(log_dirs)).decode()


def unpack_log_dirs(text: str, where: str) -> dict[LogDir, DemotedLogDir]:
    """The inverse of ``pack_log_dirs``. Terminal when the text is damaged."""
    return _unpacked(text, where, _log_dirs_from_json)


def pack_links(links: Mapping[Link, BrokenLink]) -> str:
    """The broken links as JSON text, in order of broker ids."""
    return _dump(_links_to_json(links)).decode()


def unpack_links(text: str, where: str) -> dict[Link, BrokenLink]:
    """The inverse of ``pack_links``. Terminal when the text is damaged."""
    return _unpacked(text, where, _links_from_json)


def pack_application(application: PlanApplication) -> str:
    """How far a load plan has come, as JSON text."""
    return _dump(_application_to_json(application)).decode()


def unpack_application(text: str, where: str) -> PlanApplication:
    """The inverse of ``pack_application``. Terminal when the text is damaged."""
    return _unpacked(text, where, _application_from_json)


def export_record(record: UndoRecord) -> bytes:
    """A whole record as one JSON document (which is YAML, too), for files and for people.

    ``rebalance``, ``returning``, ``logDirs`` and ``links`` are present only if they are not empty: versions before them
    pass them over, and give back everything at once.
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
    if record.log_dirs:
        document["logDirs"] = _log_dirs_to_json(record.log_dirs)
    if record.links:
        document["links"] = _links_to_json(record.links)
    return _dump(document) + b"\n"


def import_record(data: bytes, where: str) -> UndoRecord:
    """The inverse of ``export_record``. Terminal when the document is damaged or newer than this program."""
    try:
        document = bounded_json.parse(data, DOCUMENT_LIMIT)
        check_format(document["format"], where)
        return UndoRecord(
            cluster_id=read_text(document["clusterId"]),
            epoch=read_count(document["epoch"]),
            demoted=_demoted_from_json(document["demoted"]),
            entries=_entries_from_json(document["topics"], _DOCUMENT_ENTRIES),
            application=_application_from_json(document["rebalance"]) if "rebalance" in document else None,
            returning=_returning_from_json(document.get("returning", [])),
            log_dirs=_log_dirs_from_json(document.get("logDirs", [])),
            links=_links_from_json(document.get("links", [])),
        )
    except bounded_json.DAMAGE as error:
        raise _damaged(where, error) from error


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _unpacked(text: str, where: str, read: Callable[[Any], T]) -> T:
    try:
        return read(bounded_json.parse(text))
    except bounded_json.DAMAGE as error:
        raise _damaged(where, error) from error


def _damaged(where: str, error: Exception) -> Terminal:
    return Terminal(
        f"{where}: the undo record is damaged ({type(error).__name__}: {error}): import an exported copy, or compare "
        "the replica orders by hand before deleting it"
    )


def _entries_to_json(entries: Iterable[tuple[PartitionKey, UndoEntry]]) -> list[Any]:
    # By topic, then partition: neighbours look alike, which is what the compressor lives on.
    topics: dict[tuple[str, str], list[Any]] = {}
    for key, entry in entries:
        row: list[Any] = [key.partition, _CODES[entry.state], entry.baseline, entry.written]
        # Most entries have one outstanding reorder, to the order that they set out to write: the broker is enough.
        sent = [s.broker if s.order == entry.written and s.broker is not None else s for s in entry.outstanding]
        row += [entry.replaced, sent]
        if entry.finished_at is not None or entry.contests or entry.contested_at is not None:
            row += [time_or_none(entry.finished_at), entry.contests, time_or_none(entry.contested_at)]
        topics.setdefault((key.topic_id, entry.topic), []).append(row)
    return [[topic_id, topic, sorted(rows, key=itemgetter(0))] for (topic_id, topic), rows in sorted(topics.items())]


def _entries_from_json(topics: Any, limit: int) -> dict[PartitionKey, UndoEntry]:
    if sum(len(rows) for _, _, rows in topics) > limit:
        raise ValueError(f"it has more than {limit} partitions")
    entries: dict[PartitionKey, UndoEntry] = {}
    for topic_id, topic, rows in topics:
        for row in rows:
            partition, code, baseline, written, replaced, outstanding, *rare = _with_outstanding(row)
            if len(outstanding) > _MOST_OUTSTANDING:
                raise ValueError(f"a partition has more than {_MOST_OUTSTANDING} outstanding reorders")
            finished, contests, contested = rare or (None, 0, None)
            entries[PartitionKey(read_text(topic_id), read_id(partition))] = UndoEntry(
                topic=read_text(topic),
                baseline=_order(baseline),
                written=_order(written),
                replaced=_order(replaced) if replaced is not None else None,
                outstanding=tuple(_sent(one, written) for one in outstanding),
                state=_STATES[code],
                finished_at=read_time(finished) if finished else None,
                contests=read_count(contests),
                contested_at=read_time(contested) if contested else None,
            )
    return entries


def _order(value: Any) -> tuple[int, ...]:
    """A replica order. TypeError or ValueError unless it is a list of broker ids."""
    if type(value) is not list or len(value) > _MOST_REPLICAS:
        raise ValueError(f"not a list of at most {_MOST_REPLICAS} brokers")
    return tuple(read_id(broker) for broker in value)


def _sent(one: Any, written: Any) -> SentOrder:
    if type(one) is int:
        return SentOrder(_order(written), read_id(one))
    order, broker = one
    return SentOrder(_order(order), read_id(broker) if broker is not None else None)


def _with_outstanding(row: list[Any]) -> list[Any]:
    """A row of format 1 as one of format 2: it names the orders that may have been sent, and no brokers."""
    if len(row) not in (5, 8):
        return row
    partition, code, baseline, written, earlier, *rare = row
    if type(earlier) is not list:
        raise TypeError(f"{short(earlier)} is not a list of orders")
    sent = [written, *earlier] if code in _PENDING else earlier
    replaced = earlier[0] if code in _PENDING and earlier else None
    return [partition, code, baseline, written, replaced, [[order, None] for order in sent], *rare]


def _demoted_to_json(demoted: Mapping[int, DemotedBroker]) -> list[Any]:
    return [
        {
            "broker": one.broker,
            **_cause_to_json(one.cause),
            "reason": one.reason,
            "message": one.message,
            "since": time_text(one.since),
            **({"signal": one.signal} if one.signal else {}),
            **({"drainedSince": time_text(one.drained_since)} if one.drained_since is not None else {}),
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
        read_id(row["broker"]): DemotedBroker(
            broker=row["broker"],
            cause=Cause(row.get("purpose", row["cause"])),
            reason=read_text(row["reason"]),
            message=read_text(row["message"]),
            since=read_time(row["since"]),
            signal=read_text(row.get("signal", "")),
            drained_since=read_time(row["drainedSince"]) if "drainedSince" in row else None,
        )
        for row in rows
    }


def _returning_to_json(returning: Mapping[int, ReturningBroker]) -> list[Any]:
    return [
        {
            "broker": one.broker,
            "share": one.share,
            "since": time_text(one.since),
            "wavedAt": time_text(one.waved_at),
            "coming": one.trigger.value,
            **({"cutoff": one.cutoff} if one.cutoff is not None else {}),
        }
        for _, one in sorted(returning.items())
    ]


def _returning_from_json(rows: Any) -> dict[int, ReturningBroker]:
    return {
        read_id(row["broker"]): ReturningBroker(
            broker=row["broker"],
            share=_share(row["share"]),
            since=read_time(row["since"]),
            waved_at=read_time(row["wavedAt"]),
            trigger=RestorationTrigger(row["coming"]),
            cutoff=_cutoff(row.get("cutoff")),
        )
        for row in rows
    }


def _log_dirs_to_json(log_dirs: Mapping[LogDir, DemotedLogDir]) -> list[Any]:
    return [
        {
            "broker": log_dir.broker,
            "path": log_dir.path,
            "reason": one.reason,
            "message": one.message,
            "since": time_text(one.since),
            "signal": str(one.signal),
        }
        for log_dir, one in sorted(log_dirs.items())
    ]


def _log_dirs_from_json(rows: Any) -> dict[LogDir, DemotedLogDir]:
    found = {}
    for row in rows:
        log_dir = LogDir(read_id(row["broker"]), read_text(row["path"]))
        found[log_dir] = DemotedLogDir(
            log_dir,
            reason=read_text(row["reason"]),
            message=read_text(row["message"]),
            since=read_time(row["since"]),
            signal=read_text(row["signal"]),
        )
    return found


def _links_to_json(links: Mapping[Link, BrokenLink]) -> list[Any]:
    return [
        {
            "brokers": [link.one, link.other],
            "since": time_text(one.since),
            "times": one.times,
            **({"wave": _returning_to_json({link.one: one.wave})[0]} if one.wave is not None else {}),
        }
        for link, one in sorted(links.items())
    ]


def _links_from_json(rows: Any) -> dict[Link, BrokenLink]:
    found = {}
    for row in rows:
        low, high = row["brokers"]
        link = Link(read_id(low), read_id(high))
        if link.one >= link.other:
            raise ValueError(f"{short(row['brokers'])} are not two brokers in order of their ids")
        wave = _returning_from_json([row["wave"]]) if "wave" in row else {}
        if wave and link.one not in wave:
            raise ValueError(f"the wave of {link} is that of broker {next(iter(wave))}")
        found[link] = BrokenLink(
            link,
            since=read_time(row["since"]),
            times=read_count(row["times"]),
            wave=wave.get(link.one),
        )
    return found


def _share(value: object) -> int:
    if type(value) is not int or not 0 <= value <= 100:
        raise ValueError(f"{value!r} is not a share from 0 to 100 percent")
    return value


def _cutoff(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise ValueError(f"{value!r} is not a cutoff from 0 to 100")
    return float(value)


def _application_to_json(application: PlanApplication) -> dict[str, Any]:
    return {
        "digest": application.digest,
        "moves": application.moves,
        "since": time_text(application.since),
        "wavedAt": time_text(application.waved_at),
        "takenUp": application.taken_up,
        "left": dict(sorted(application.left.items())),
        "leftLoad": application.left_load,
        "sample": [[one.topic, one.partition, one.reason] for one in application.sample],
        "ended": application.ended.value if application.ended is not None else "",
        "message": application.message,
    }


def _application_from_json(row: Any) -> PlanApplication:
    return PlanApplication(
        digest=read_text(row["digest"]),
        moves=read_count(row["moves"]),
        since=read_time(row["since"]),
        waved_at=read_time(row["wavedAt"]),
        taken_up=read_count(row["takenUp"]),
        left={read_text(reason): read_count(count) for reason, count in row["left"].items()},
        left_load=read_count(row["leftLoad"]),
        sample=tuple(
            SkippedPartition(read_text(topic), read_id(n), read_text(reason)) for topic, n, reason in row["sample"]
        ),
        ended=ApplicationEnd(row["ended"]) if row["ended"] else None,
        message=read_text(row["message"]),
    )
