"""Encode and decode an undo record as bytes, for every store of undo records.

In: ``core.model.undo_record`` values. Out: compact JSON, zlib-compressed where a store asks for it, with a format
version. Called by ``undo_record_store`` (by shards) and ``undo_record_file`` (whole). A newer format is refused.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from bellwether.adapters.json_codec import SIZE_LIMIT, JsonCodec, NodeId, dump, parse, time_text
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.model.undo_record import (
    FORMAT_VERSION,
    ApplicationEnd,
    BrokenLink,
    DemotedBroker,
    EntryState,
    Link,
    PlanApplication,
    Sender,
    SentOrder,
    UndoEntry,
    UndoRecord,
)
from bellwether.core.stored_documents import InvalidDocument
from bellwether.ports.errors import Terminal

T = TypeVar("T")

PART_ENTRIES = 100_000
"""Entries of one compressed part: four times a shard of 200,000 partitions. As objects they take about 40 MB."""

DOCUMENT_LIMIT = 64 << 20
"""Bytes of a whole record as one document: eight parts of the largest size."""

_DOCUMENT_ENTRIES = 8 * PART_ENTRIES
_DOCUMENT_NAMES = 2_000_000
"""Names of fields in a whole record, which has few per entry: each that is unknown takes 350 bytes."""
_NAME = re.compile(rb'"\s*:')

# Level 6 saves a fifth of the space and takes four times as long.
_LEVEL = 1

_CODES = {EntryState.INTENDED: "I", EntryState.DISPLACED: "D", EntryState.RESTORING: "R", EntryState.RESTORED: "T"}
_STATES = {code: state for state, code in _CODES.items()}

_Order = Annotated[tuple[NodeId, ...], Field(max_length=1000)]  # Kafka's protocol would allow 32,767 replicas


class _Row(NamedTuple):
    """An entry. Most have one outstanding reorder, to the order that they set out to write: its broker is enough."""

    partition: int
    state: Literal["I", "D", "R", "T"]
    baseline: _Order
    written: _Order
    replaced: _Order | None
    outstanding: Annotated[tuple[NodeId | SentOrder, ...], Field(max_length=64)]
    finished_at: datetime | None = None
    contests: int = 0
    contested_at: datetime | None = None


class _Topic(NamedTuple):
    topic_id: str
    name: str
    rows: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    """A whole record. The Kubernetes store keeps its parts apart: the rows by shards, others as texts in the header."""

    format: int
    cluster_id: str
    epoch: int
    demoted: tuple[DemotedBroker, ...]
    topics: tuple[_Topic, ...]
    rebalance: PlanApplication | None = None
    returning: tuple[ReturningBroker, ...] = ()
    log_dirs: tuple[DemotedLogDir, ...] = ()
    links: tuple[BrokenLink, ...] = ()
    senders: Annotated[tuple[Sender, ...], Field(max_length=1000)] = ()


def _in_order(link: Link) -> Link:
    if link.one >= link.other:
        raise ValueError(f"{link} are not in order of their ids")
    return link


_STORED: Mapping[str, Any] = {
    "format": Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)],
    "partition": NodeId,
    "broker": NodeId,
    "SentOrder.broker": NodeId | None,
    "SentOrder.order": _Order,
    "share": Annotated[int, Field(ge=0, le=100)],
    "cutoff": Annotated[float, Field(ge=0, le=100)] | None,
    "link": Annotated[Link, AfterValidator(_in_order)],
    "ended": Annotated[
        ApplicationEnd | None, BeforeValidator(lambda end: end or None), PlainSerializer(lambda end: end or "")
    ],
}
_TOPICS: JsonCodec[tuple[_Topic, ...]] = JsonCodec(tuple[_Topic, ...], fields=_STORED)
_DOCUMENT: JsonCodec[_Document] = JsonCodec(
    _Document,
    names={"trigger": "coming", "link": "brokers"},
    fields=_STORED,
    omit=("rebalance", "returning", "log_dirs", "links", "senders", "signal", "drained_since", "cutoff", "wave"),
)
_IN_HEADER = ("demoted", "rebalance", "returning", "logDirs", "links", "senders")


def check_format(version: object, where: str) -> None:
    """Refuse (Terminal) what this program cannot read; ``where`` names the object or file in the message."""
    if not isinstance(version, int) or version < 1:
        raise Terminal(f"{where}: not an undo record: format version {version!r} is not a positive number")
    if version != FORMAT_VERSION:
        other = "newer" if version > FORMAT_VERSION else "older"
        raise Terminal(
            f"{where}: the undo record has format version {version}, this program reads {FORMAT_VERSION}: "
            f"run the {other} version of Bellwether that wrote it"
        )


def pack_entries(entries: Iterable[tuple[PartitionKey, UndoEntry]]) -> bytes:
    """Entries as compressed bytes; the same entries give the same bytes in whatever order they come.

    Terminal when they are more than ``unpack_entries`` would read: what cannot be read back is not written.
    """
    found = list(entries)
    text = dump(_topics(found))
    if len(found) > PART_ENTRIES or len(text) > SIZE_LIMIT:
        raise Terminal(
            f"this part of the undo record would have {len(found)} partitions in {len(text)} bytes; at most"
            f" {PART_ENTRIES} in {SIZE_LIMIT} bytes are supported: demote fewer brokers at a time"
        )
    return zlib.compress(text, _LEVEL)


def unpack_entries(data: bytes, where: str) -> dict[PartitionKey, UndoEntry]:
    """The inverse of ``pack_entries``. Terminal when the bytes are damaged."""
    try:
        return _entries(_TOPICS.unpack(data), PART_ENTRIES)
    except InvalidDocument as error:
        raise _damaged(where, error) from error


def without_entries(record: UndoRecord) -> dict[str, Any]:
    """The record as JSON values, without its entries."""
    document: dict[str, Any] = _DOCUMENT.to_json(_document(record))
    del document["topics"]
    return document


def pack_header(record: UndoRecord) -> dict[str, str]:
    """The record without its entries, as JSON texts by name; what is empty is left out."""
    document = without_entries(record)
    return {name: dump(document[name]).decode() for name in _IN_HEADER if name in document}


def unpack_header(
    header: Mapping[str, str], epoch: int, entries: Mapping[PartitionKey, UndoEntry], where: str
) -> UndoRecord:
    """The record of these entries and of a header with ``clusterId`` and what ``pack_header`` wrote. Terminal when it
    is damaged.
    """
    try:
        parts = {name: parse(header[name]) for name in _IN_HEADER if name in header}
        identity = {"format": FORMAT_VERSION, "clusterId": header.get("clusterId"), "epoch": epoch}
        return _record(_DOCUMENT.from_json({**identity, **parts, "topics": []}), entries)
    except InvalidDocument as error:
        raise _damaged(where, error) from error


def export_record(record: UndoRecord) -> bytes:
    """A whole record as one JSON document (which is YAML, too), for files and for people."""
    document = _DOCUMENT.to_json(_document(record))
    return dump({**document, "topics": _topics(record.entries.items())}) + b"\n"


def import_record(data: bytes, where: str) -> UndoRecord:
    """The inverse of ``export_record``. Terminal when the document is damaged or of another format."""
    try:
        document = _decoded(data, where)
        return _record(document, _entries(document.topics, _DOCUMENT_ENTRIES))
    except InvalidDocument as error:
        raise _damaged(where, error) from error


def _decoded(data: bytes, where: str) -> _Document:
    if any(islice(_NAME.finditer(data), _DOCUMENT_NAMES, None)):
        raise InvalidDocument(f"it has more than {_DOCUMENT_NAMES} fields")
    try:
        return _DOCUMENT.decode(data, DOCUMENT_LIMIT)
    except InvalidDocument:
        values = parse(data, DOCUMENT_LIMIT)
        if not isinstance(values, dict):
            raise InvalidDocument("it is not a JSON object") from None
        check_format(values.get("format"), where)  # another format is not damage
        raise


def _damaged(where: str, error: Exception) -> Terminal:
    return Terminal(
        f"{where}: the undo record is damaged: {error}: import an exported copy, or compare the replica orders by hand"
        " before deleting it"
    )


def _document(record: UndoRecord) -> _Document:
    """The record without its entries."""
    return _Document(
        FORMAT_VERSION,
        record.cluster_id,
        record.epoch,
        _sorted(record.demoted),
        (),
        record.application,
        _sorted(record.returning),
        _sorted(record.log_dirs),
        _sorted(record.links),
        record.senders,
    )


def _sorted(values: Mapping[Any, T]) -> tuple[T, ...]:
    return tuple(value for _, value in sorted(values.items(), key=itemgetter(0)))


def _record(document: _Document, entries: Mapping[PartitionKey, UndoEntry]) -> UndoRecord:
    return UndoRecord(
        document.cluster_id,
        document.epoch,
        {one.broker: one for one in document.demoted},
        entries,
        document.rebalance,
        {one.broker: one for one in document.returning},
        {one.log_dir: one for one in document.log_dirs},
        {one.link: one for one in document.links},
        document.senders,
    )


def _topics(entries: Iterable[tuple[PartitionKey, UndoEntry]]) -> list[Any]:
    # By topic, then partition: neighbours look alike, which is what the compressor lives on.
    topics: dict[tuple[str, str], list[Any]] = {}
    for key, entry in entries:
        sent = [s.broker if s.order == entry.written and s.broker is not None else s for s in entry.outstanding]
        row: list[Any] = [key.partition, _CODES[entry.state], entry.baseline, entry.written, entry.replaced, sent]
        if entry.finished_at is not None or entry.contests or entry.contested_at is not None:
            finished, contested = (at and time_text(at) for at in (entry.finished_at, entry.contested_at))
            row += [finished, entry.contests, contested]
        topics.setdefault((key.topic_id, entry.topic), []).append(row)
    return [[topic_id, topic, sorted(rows, key=itemgetter(0))] for (topic_id, topic), rows in sorted(topics.items())]


def _entries(topics: Iterable[_Topic], limit: int) -> dict[PartitionKey, UndoEntry]:
    if sum(len(topic.rows) for topic in topics) > limit:
        raise InvalidDocument(f"it has more than {limit} partitions")
    return {
        PartitionKey(topic_id, row.partition): UndoEntry(
            name,
            row.baseline,
            row.written,
            row.replaced,
            tuple(SentOrder(row.written, one) if isinstance(one, int) else one for one in row.outstanding),
            _STATES[row.state],
            row.finished_at,
            row.contests,
            row.contested_at,
        )
        for topic_id, name, rows in topics
        for row in rows
    }
