"""Undo record store in ConfigMaps: a header and a fixed number of compressed shards (invariants 6, 7 and 8).

In: whole ``UndoRecord`` values. Out: only the shards that changed, all at the same time, each by a
resourceVersion-checked write, then the header. Every object contains the epoch and the writer of its last write. A
takeover rewrites all of them, so that the next write of an older holder meets an unknown resourceVersion and finds
another writer: ``Fenced``.

This order is safe: every entry is independent, and one that was recorded without its reorder has no effect. No object
has an owner reference: foreground deletion would delete the record before the policy's finalizer could restore from it.
"""

from __future__ import annotations

import base64
import threading
import uuid
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from bellwether.adapters import undo_record_codec
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.undo_record import FORMAT_VERSION, Sender, UndoEntry, UndoRecord
from bellwether.ports.errors import Fenced, Terminal, Transient

FINALIZER = "bellwether.dev/undo-record"
PART_LABEL = "bellwether.dev/undo-record"
SHARDS = 8
# A topic's partitions are spread in blocks, so that a very large topic does not overflow its shard.
BLOCK = 512
_ATTEMPTS = 5


class ConfigMapRecords:
    """``ports.kubernetes.UndoRecords`` for one policy. One instance is one writer; ``take_over`` comes first."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, sender: Sender | None = None) -> None:
        """``sender`` is this process, if it sends reorders."""
        self._sender = sender
        self._api = api
        self._namespace = namespace
        self._name = object_names.undo_record(policy)
        # Other ConfigMaps with the policy's label are not listed: who writes these may not write records.
        self._labels = {object_names.POLICY_LABEL: object_names.legal(policy), PART_LABEL: ""}
        self._policy = policy
        self._writer = str(uuid.uuid4())
        self._lock = threading.Lock()
        self._versions: dict[str, str] = {}
        self._saved: UndoRecord | None = None
        self._sequence = 0
        self._dirty: set[int] = set()
        self._header_dirty = False
        self._fenced: str | None = None

    def read(self) -> UndoRecord | None:
        """Read the stored record without taking it over; None if this policy has none."""
        return _assemble(self._load())

    @property
    def never_saved(self) -> bool:
        """Whether the record that was taken over was never saved: it is new, or its header was lost."""
        return not self._sequence

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Read the record and raise its epoch in all of its objects.

        Raises Terminal if the record belongs to another Kafka cluster and is not empty, is newer than this program or
        is damaged. Raises Transient if other writers were faster in all attempts.
        """
        with self._lock:
            for _ in range(_ATTEMPTS):
                try:
                    self._saved = self._take_over(cluster_id)
                    return self._saved
                except Conflict:
                    continue
            raise Transient(
                f"undo record {self._namespace}/{self._name}: {_ATTEMPTS} attempts to write failed because of"
                " other writers"
            )

    def save(self, record: UndoRecord) -> None:
        """Write what changed since the last call, if anything did.

        Raises Fenced if another writer has taken over, Transient if the API is unavailable: unconfirmed changes are
        sent again by the next call.
        """
        with self._lock:
            saved = self._saved
            if saved is None:
                raise Fenced("the undo record was not taken over: call take_over before writing")
            if self._fenced is not None:
                raise Fenced(self._fenced)
            if record.epoch != saved.epoch or record.cluster_id != saved.cluster_id:
                raise Fenced(f"the record to save has epoch {record.epoch}, this writer has {saved.epoch}")
            self._dirty |= _changed_shards(saved.entries, record.entries)
            self._header_dirty |= bool(self._dirty) or saved.demoted != record.demoted
            self._header_dirty |= saved.log_dirs != record.log_dirs or saved.links != record.links
            self._header_dirty |= saved.senders != record.senders
            self._header_dirty |= saved.application != record.application or saved.returning != record.returning
            # From here on ``_saved`` is the requested record, and the dirty marks are what may not have been written.
            self._saved = record
            self._write_shards(record)
            if self._header_dirty:
                self._sequence += 1
                self._write(self._name, self._header_data(record), None)
                self._header_dirty = False

    def check(self) -> None:
        """Raise Fenced if another writer has taken over, such as ``bellwether undo-record import``. One read."""
        with self._lock:
            found = self._api.find(CONFIG_MAPS, self._namespace, self._name)
            if self._saved is not None and ((found or {}).get("data") or {}).get("writer") != self._writer:
                raise self._fence(self._name, found)

    def delete(self, force: bool = False) -> None:
        """Delete the record's objects and their finalizers. Raises Terminal if it is not empty, unless ``force``."""
        with self._lock:
            found = self._load()
            record = _assemble(found) if not force else None
            if record is not None and not record.empty:
                raise Terminal(
                    f"the undo record of policy {self._namespace}/{self._policy} still contains"
                    f" {len(record.entries)} partitions: restore them, or export it and force its deletion"
                )
            # Header first: the rest of an interrupted deletion is still found by its label.
            for name in sorted(found):
                self._remove(found[name])
            self._saved, self._versions = None, {}

    def ending(self) -> bool:
        """Whether any of the record's objects is being deleted and only kept by its finalizer. One list."""
        return any(found["metadata"].get("deletionTimestamp") for found in self._load().values())

    def let_go(self) -> None:
        """Remove the finalizers of the record's objects, so that nothing waits for them."""
        with self._lock:
            for found in self._api.list(CONFIG_MAPS, self._namespace, self._labels):
                self._release(found)
            self._saved, self._versions = None, {}

    def export(self) -> bytes:
        """The record as one document for ``import_record``. Raises Terminal if there is none."""
        record = self.read()
        if record is None:
            raise Terminal(f"policy {self._namespace}/{self._policy} has no undo record")
        return undo_record_codec.export_record(record)

    def check_import(self, data: bytes) -> UndoRecord:
        """The record that ``import_record`` would store, checked before another writer is fenced; writes nothing.

        Raises Terminal if the document is invalid, empty or of another Kafka cluster, and if this policy has no record
        yet, or one with a demoted broker or a baseline that the document does not have.
        """
        given, standing = undo_record_codec.import_record(data, "imported undo record"), self.read()
        if standing is None:
            raise Terminal(
                f"policy {self._namespace}/{self._policy} has no undo record yet: create the policy, and wait"
                " until the operator reaches Kafka"
            )
        _check_import(given, standing)
        return given

    def import_record(self, data: bytes) -> UndoRecord:
        """Replace a record by an exported one that has its baselines, with this writer's epoch; requires ``take_over``.

        What may arrive late by the record before stays outstanding.
        """
        saved, given = self._saved, undo_record_codec.import_record(data, "imported undo record")
        if saved is None:
            raise Fenced("the undo record was not taken over: call take_over before writing")
        _check_import(given, saved)
        senders = tuple(dict.fromkeys((*given.senders, *saved.senders)))
        record = replace(given.with_outstanding_of(saved), epoch=saved.epoch, senders=senders)
        self.save(record)
        return record

    def _load(self) -> dict[str, Object]:
        mine = {o["metadata"]["name"]: o for o in self._api.list(CONFIG_MAPS, self._namespace, self._labels)}
        return {name: mine[name] for name in (self._name, *map(self._shard_name, range(SHARDS))) if name in mine}

    def _take_over(self, cluster_id: str) -> UndoRecord:
        """One attempt; raises Conflict if another writer wrote in between."""
        found = self._load()
        record = _assemble(found) or UndoRecord(cluster_id=cluster_id)
        if record.cluster_id not in ("", cluster_id) and not record.empty:
            raise Terminal(
                f"the undo record of policy {self._namespace}/{self._policy} belongs to Kafka cluster"
                f" {record.cluster_id}, the policy now reaches {cluster_id}: point the policy back at the old"
                " cluster, or export and delete the record"
            )
        if record.cluster_id != cluster_id:
            record = replace(record, application=None)
        self._writer, self._fenced, self._saved = str(uuid.uuid4()), None, None
        self._versions, self._dirty, self._header_dirty = {}, set(), False
        self._sequence = _sequence(found.get(self._name))
        record = replace(record, cluster_id=cluster_id, epoch=record.epoch + 1).with_sender(self._sender)
        # The header first: from here on an older holder cannot finish a save. Its last shards may still arrive until
        # each is rewritten below, so the content at that moment counts.
        self._stamp_part(self._name, self._header_data(record), None, found.get(self._name))
        entries: dict[PartitionKey, UndoEntry] = {}
        for shard in range(SHARDS):
            name = self._shard_name(shard)
            entries.update(_shard_entries(self._claim(name, record.epoch, found.get(name))))
        return replace(record, entries=entries)

    def _claim(self, name: str, epoch: int, seen: Object | None) -> Object:
        """Set this writer and epoch on one shard, keeping its entries at that moment."""
        for _ in range(_ATTEMPTS):
            packed = undo_record_codec.pack_entries(())
            if seen is not None:
                _check(seen)
                if _epoch(seen) >= epoch:
                    raise Conflict(f"{_where(seen)}: another writer is taking over at the same time")
                packed = base64.b64decode((seen.get("binaryData") or {}).get("entries", "")) or packed
            try:
                return self._stamp_part(name, self._stamp(epoch), packed, seen)
            except Conflict:
                seen = self._api.find(CONFIG_MAPS, self._namespace, name)
        raise Conflict(
            f"configmap {self._namespace}/{name}: {_ATTEMPTS} attempts to write failed because of other writers"
        )

    def _stamp_part(self, name: str, data: dict[str, str], packed: bytes | None, seen: Object | None) -> Object:
        body = self._body(name, data, packed)
        if seen is None:
            written = self._api.create(CONFIG_MAPS, self._namespace, body)
        else:
            body["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"]
            written = self._api.replace(CONFIG_MAPS, self._namespace, body)
        self._versions[name] = written["metadata"]["resourceVersion"]
        return written

    def _write_shards(self, record: UndoRecord) -> None:
        """Write the dirty shards at the same time: leaders wait for it. Raises the first error once all have ended."""
        stamp = self._stamp(record.epoch)
        with ThreadPoolExecutor(SHARDS, "undo-record") as pool:
            written = {
                shard: pool.submit(self._write, self._shard_name(shard), stamp, packed)
                for shard, packed in _pack_shards(record.entries, sorted(self._dirty))
            }
        self._dirty.difference_update(shard for shard, ended in written.items() if ended.exception() is None)
        for ended in written.values():
            ended.result()

    def _write(self, name: str, data: dict[str, str], packed: bytes | None) -> None:
        for _ in range(_ATTEMPTS):
            body = self._body(name, data, packed)
            body["metadata"]["resourceVersion"] = self._versions[name]
            try:
                written = self._api.replace(CONFIG_MAPS, self._namespace, body)
            except Conflict:
                # From this writer if an earlier write succeeded but its response was lost, or only metadata was
                # changed.
                current = self._api.find(CONFIG_MAPS, self._namespace, name)
                if current is None or (current.get("data") or {}).get("writer") != self._writer:
                    raise self._fence(name, current) from None
                self._versions[name] = current["metadata"]["resourceVersion"]
                continue
            except NotFound:
                raise self._fence(name, None) from None
            self._versions[name] = written["metadata"]["resourceVersion"]
            return
        raise Transient(f"configmap {self._namespace}/{name} was changed by others in all {_ATTEMPTS} attempts")

    def _fence(self, name: str, current: Object | None) -> Fenced:
        epoch = "it was deleted" if current is None else f"it has epoch {(current.get('data') or {}).get('epoch')}"
        self._fenced = f"another writer has taken over the undo record: configmap {self._namespace}/{name}: {epoch}"
        return Fenced(self._fenced)

    def _remove(self, found: Object) -> None:
        try:
            self._release(found)
            self._api.delete(CONFIG_MAPS, self._namespace, found["metadata"]["name"])
        except NotFound:
            return  # it was already marked for deletion and was removed with its finalizer

    def _release(self, found: Object) -> None:
        kept = [f for f in found["metadata"].get("finalizers", []) if f != FINALIZER]
        patch = {"metadata": {"finalizers": kept, "resourceVersion": found["metadata"]["resourceVersion"]}}
        self._api.merge(CONFIG_MAPS, self._namespace, found["metadata"]["name"], patch)

    def _shard_name(self, shard: int) -> str:
        return f"{self._name}.{shard}"

    def _stamp(self, epoch: int) -> dict[str, str]:
        return {"format": str(FORMAT_VERSION), "epoch": str(epoch), "writer": self._writer}

    def _header_data(self, record: UndoRecord) -> dict[str, str]:
        return {
            **self._stamp(record.epoch),
            "clusterId": record.cluster_id,
            **undo_record_codec.pack_header(record),
            "sequence": str(self._sequence),
        }

    def _body(self, name: str, data: Mapping[str, str], packed: bytes | None) -> Object:
        part = "header" if packed is None else "shard"
        body: Object = {
            "metadata": {"name": name, "labels": {**self._labels, PART_LABEL: part}, "finalizers": [FINALIZER]},
            "data": dict(data),
        }
        if packed is not None:
            body["binaryData"] = {"entries": base64.b64encode(packed).decode()}
        return body


def shard_of(key: PartitionKey) -> int:
    """Shard of a partition; determined by topic id and partition, and never changed."""
    return zlib.crc32(f"{key.topic_id}/{key.partition // BLOCK}".encode()) % SHARDS


def _changed_shards(old: Mapping[PartitionKey, UndoEntry], new: Mapping[PartitionKey, UndoEntry]) -> set[int]:
    if old is new:
        return set()
    changed = [key for key, entry in new.items() if old.get(key) is not entry and old.get(key) != entry]
    if len(old) + len(changed) != len(new) or changed:
        changed += [key for key in old if key not in new]
    return {shard_of(key) for key in changed}


def _pack_shards(entries: Mapping[PartitionKey, UndoEntry], shards: list[int]) -> Iterable[tuple[int, bytes]]:
    if not shards:
        return
    members: dict[int, list[tuple[PartitionKey, UndoEntry]]] = {shard: [] for shard in shards}
    known: dict[tuple[str, int], int] = {}
    for key, entry in entries.items():
        block = (key.topic_id, key.partition // BLOCK)
        shard = known.get(block)
        if shard is None:
            shard = known[block] = shard_of(key)
        if shard in members:
            members[shard].append((key, entry))
    for shard in shards:
        yield shard, undo_record_codec.pack_entries(members[shard])


def _where(found: Object) -> str:
    return f"configmap {found['metadata'].get('namespace', '')}/{found['metadata']['name']}"


def _check(found: Object) -> None:
    version = (found.get("data") or {}).get("format", "")
    undo_record_codec.check_format(_whole(version) or version, _where(found))


def _epoch(found: Object) -> int:
    text = (found.get("data") or {}).get("epoch", "")
    epoch = _whole(text)
    if epoch is None:
        raise Terminal(
            f"{_where(found)}: the epoch {text[:40]!r} is not a number: import an exported copy of the record"
        )
    return epoch


def _sequence(header: Object | None) -> int:
    text = (header.get("data") or {}).get("sequence", "0") if header else "0"
    return _whole(text) or 0


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _shard_entries(shard: Object) -> dict[PartitionKey, UndoEntry]:
    packed = (shard.get("binaryData") or {}).get("entries", "")
    return undo_record_codec.unpack_entries(base64.b64decode(packed), _where(shard)) if packed else {}


def _check_import(given: UndoRecord, standing: UndoRecord) -> None:
    """Raise Terminal unless ``given`` may replace ``standing``."""
    if not given.may_replace(standing):
        raise Terminal("the undo record is not empty: restore or delete it before another one is imported")
    if given.cluster_id != standing.cluster_id:
        raise Terminal(f"the imported record is of Kafka cluster {given.cluster_id}, not of {standing.cluster_id}")
    if given.empty:
        raise Terminal("the document contains no displaced partition and no demoted broker: there is nothing to import")


def _assemble(found: Mapping[str, Object]) -> UndoRecord | None:
    """Assemble the record from its objects; None without any. Terminal if a part is missing, damaged or too new."""
    if not found:
        return None
    for part in found.values():
        _check(part)
    headers = [o for o in found.values() if o["metadata"]["labels"][PART_LABEL] == "header"]
    shards = [o for o in found.values() if o["metadata"]["labels"][PART_LABEL] == "shard"]
    entries: dict[PartitionKey, UndoEntry] = {}
    for shard in shards:
        entries.update(_shard_entries(shard))
    epoch = max(_epoch(o) for o in found.values())
    if not headers:
        return UndoRecord(cluster_id="", epoch=epoch, entries=entries)
    header = headers[0]
    if _sequence(header) and len(shards) < SHARDS:
        raise Terminal(
            f"{_where(header)}: the undo record has {len(shards)} of {SHARDS} shards, the others were"
            " deleted: import an exported copy, or delete the record by force after comparing the replica"
            " orders"
        )
    return undo_record_codec.unpack_header(header["data"], epoch, entries, _where(header))
