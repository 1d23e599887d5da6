"""Audit log in ConfigMaps: segments of entries, the oldest removed by count and by age.

In: entries, one when a reconcile starts to move something and the same one again with its outcome. Out: one JSON line
each on the logger ``bellwether.audit``, and a segment. A full segment is never written again. Nothing here stops a
reconcile: what could not be written is kept and written with the next entry (decision 0023).

The segments have neither an owner nor a finalizer: they outlive their policy and do not block the deletion of a
namespace.
"""

from __future__ import annotations

import base64
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta

from bellwether.adapters import audit_codec
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.core.reporting.audit import AuditEntry
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient

LABEL = f"{object_names.GROUP}/audit"
SEGMENT = "segment"
FULL = 100
"""Maximum number of entries of a segment: about 30 kB, rewritten with each entry."""

FULL_CHARACTERS = 250_000
"""Size at which a segment is full as well: some entries are large."""

SEGMENTS = 20
"""Number of segments of a policy that are kept, including the current one."""

KEPT_DAYS = 180
AGAIN_SECONDS = 600.0
"""Seconds between two updates of the count of a repeated entry."""

_MOST_WAITING = 200
_ATTEMPTS = 5


class ConfigMapAuditLog:
    """``ports.kubernetes.AuditTrail`` for one policy. Called by one thread."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, clock: Clock) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._clock = clock
        self._name = object_names.audit_trail(policy)
        self._labels = {LABEL: SEGMENT, object_names.POLICY_LABEL: object_names.legal(policy)}
        self._open: AuditEntry | None = None
        self._last: AuditEntry | None = None
        self._written = float("-inf")
        self._waiting: deque[AuditEntry] = deque(maxlen=_MOST_WAITING)
        self._current: Object | None = None
        self.problem = ""
        """Why the last entry is not written; empty if it is."""

    def begin(self, entry: AuditEntry) -> None:
        """Record what a reconcile is about to do, if possible before anything moves."""
        self._open = entry
        if self._last is None or not self._repeats(entry):
            self._record(entry)

    def conclude(self, entry: AuditEntry) -> None:
        """Record the entry that was begun, with its outcome."""
        last, began = self._last, self._open
        self._open = None
        if began is not None and last is not None and self._repeats(began) and last.same(entry):
            self._last = last.again(entry)
            if self._clock.monotonic() - self._written >= AGAIN_SECONDS:
                self._record(self._last)
            return
        self._last = entry
        self._record(entry)

    def read(self) -> list[AuditEntry]:
        """All stored entries, the oldest first. Raises Transient or Terminal."""
        found: dict[tuple[datetime, int], AuditEntry] = {}
        for segment in self._segments():
            for entry in _entries(segment) or ():
                # If another writer opened a segment in between, an entry is stored twice: as begun, and with its
                # outcome.
                if entry.outcome is not None or (entry.at, entry.epoch) not in found:
                    found[entry.at, entry.epoch] = entry
        return sorted(found.values(), key=lambda e: e.at)

    def _repeats(self, entry: AuditEntry) -> bool:
        """Whether an entry without outcome repeats the last entry with outcome."""
        last = self._last
        return last is not None and last.same(replace(entry, outcome=last.outcome, orders=last.orders))

    def _record(self, entry: AuditEntry) -> None:
        import structlog

        event = "audit_entry_started" if entry.outcome is None else "audit_entry_completed"
        # The policy is bound in the controller's logger, but each line must contain it when these are read alone.
        structlog.get_logger("bellwether.audit").info(
            event, policy=f"{self._namespace}/{self._policy}", **audit_codec.to_json(entry)
        )
        self._waiting.append(entry)
        try:
            self._write()
        except BellwetherError as error:
            if not self.problem:
                structlog.get_logger(__name__).warning("audit_log_not_written", error=str(error))
            self.problem = str(error)
            return
        self.problem = ""
        self._written = self._clock.monotonic()

    def _write(self) -> None:
        """Write the pending entries, to the segment as this writer left it. If another one has changed it since, or
        opened the next, all are read again."""
        for _ in range(_ATTEMPTS):
            segments = self._segments() if self._current is None else [self._current]
            try:
                opened = self._put(segments[-1] if segments else None, list(self._waiting))
            except Conflict:
                self._current = None
                continue
            self._waiting.clear()
            if opened:
                self._retire(self._segments())
            return
        raise Transient(
            f"configmap {self._namespace}/{self._name}: {_ATTEMPTS} attempts to write failed because of other writers"
        )

    def _put(self, current: Object | None, new: list[AuditEntry]) -> bool:
        """Write the current segment, or open the next one if it is full or damaged; True if one was opened."""
        number = _number(current) if current is not None else 0
        standing = _entries(current) if current is not None else None
        if current is None or standing is None:
            self._current = self._api.create(CONFIG_MAPS, self._namespace, self._body(number + 1, _latest(new)))
            return True
        places = {(e.at, e.epoch): place for place, e in enumerate(standing)}
        full = len(standing) >= FULL or len(_packed(current)) >= FULL_CHARACTERS
        kept, further = list(standing), []
        for entry in new:
            place = places.get((entry.at, entry.epoch))
            if place is not None:
                kept[place] = entry  # now with its outcome
            elif full:
                further.append(entry)
            else:
                places[entry.at, entry.epoch] = len(kept)
                kept.append(entry)
        if kept != standing:
            body = self._body(number, kept)
            body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            try:
                self._current = self._api.replace(CONFIG_MAPS, self._namespace, body)
            except NotFound as error:
                raise Conflict(
                    f"configmap {self._namespace}/{body['metadata']['name']} does not exist any more"
                ) from error
        if further:
            self._current = self._api.create(CONFIG_MAPS, self._namespace, self._body(number + 1, _latest(further)))
        return bool(further)

    def _retire(self, segments: list[Object]) -> None:
        """Remove the oldest segments beyond the maximum count, and those whose last entry is too old."""
        oldest = self._clock.now() - timedelta(days=KEPT_DAYS)
        for place, segment in enumerate(segments[:-1]):
            if place < len(segments) - SEGMENTS or _until(segment) < oldest:
                try:
                    self._api.delete(CONFIG_MAPS, self._namespace, segment["metadata"]["name"])
                except NotFound:
                    continue

    def _segments(self) -> list[Object]:
        """Segments of the log, the oldest first."""
        found = self._api.list(CONFIG_MAPS, self._namespace, self._labels)
        mine = [o for o in found if o["metadata"]["name"].rpartition(".")[0] == self._name]
        return sorted(mine, key=_number)

    def _body(self, number: int, entries: list[AuditEntry]) -> Object:
        until = max(e.last or e.at for e in entries).isoformat(timespec="seconds")
        return {
            "metadata": {
                "name": f"{self._name}.{number}",
                "labels": dict(self._labels),
                "annotations": {"bellwether.dev/policy": self._policy},
            },
            "data": {"entries": str(len(entries)), "until": until},
            "binaryData": {"entries.z": base64.b64encode(audit_codec.pack(entries)).decode()},
        }


def _latest(entries: list[AuditEntry]) -> list[AuditEntry]:
    """The latest version of each entry."""
    return list({(e.at, e.epoch): e for e in entries}.values())


def _packed(segment: Object) -> str:
    return str((segment.get("binaryData") or {}).get("entries.z", ""))


def _entries(segment: Object) -> list[AuditEntry] | None:
    """Entries of a segment; None if it is damaged."""
    try:
        return audit_codec.unpack(base64.b64decode(_packed(segment)), f"configmap {segment['metadata']['name']}")
    except (Terminal, ValueError) as error:
        import structlog

        structlog.get_logger(__name__).warning("audit_segment_skipped", error=str(error))
        return None


def _number(segment: Object) -> int:
    text = str(segment["metadata"]["name"]).rpartition(".")[2]
    return int(text) if text.isdigit() else 0


def _until(segment: Object) -> datetime:
    try:
        return datetime.fromisoformat(str(segment["data"]["until"]))
    except (KeyError, ValueError):
        return datetime.fromisoformat(str(segment["metadata"].get("creationTimestamp", "9999-12-31T00:00:00+00:00")))
