"""Audit log in ConfigMaps: segments of entries, the oldest removed by count and by age.

In: entries, one when a turn sets out to move something and the same one again with its outcome. Out: one JSON line each
on the logger ``bellwether.audit``, and a segment written. A full segment is never written again. Nothing here ever
stops a turn: what could not be written is kept and written with the next entry (decision 0023).

The segments have neither an owner nor a finalizer: they outlive their policy, and keep no namespace from ending.
"""

from __future__ import annotations

import base64
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from bellwether.adapters import audit_codec
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, Conflict, KubernetesClient, NotFound, Object
from bellwether.core.reporting.audit import AuditEntry
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient

LABEL = f"{object_names.GROUP}/audit"
SEGMENT = "segment"
FULL = 100
"""Entries of one segment: some 30 kB, written anew with each entry."""

FULL_CHARACTERS = 250_000
"""A segment that has grown to that is full, too: some entries are large."""

SEGMENTS = 20
"""How many segments of a policy stand, the one that is written to included."""

KEPT_DAYS = 180
AGAIN_SECONDS = 600.0
"""How often the count of an entry that repeats itself is written."""

_MOST_WAITING = 200
_ATTEMPTS = 5

log = structlog.get_logger(__name__)
audit_log = structlog.get_logger("bellwether.audit")


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
        self._ailing = False

    def begin(self, entry: AuditEntry) -> None:
        """What a turn sets out to do; durable, if that is possible, before anything moves."""
        self._open = entry
        if self._last is None or not self._repeats(entry):
            self._tell(entry)
            self._keep(entry)

    def conclude(self, entry: AuditEntry) -> None:
        """The entry that was begun, with what came of it."""
        last, began = self._last, self._open
        self._open = None
        if began is not None and last is not None and self._repeats(began) and last.same(entry):
            self._last = last.again(entry)
            if self._clock.monotonic() - self._written >= AGAIN_SECONDS:
                self._tell(self._last)
                self._keep(self._last)
            return
        self._last = entry
        self._tell(entry)
        self._keep(entry)

    def read(self) -> list[AuditEntry]:
        """All entries that stand, the oldest first. Raises Transient or Terminal."""
        found: dict[tuple[datetime, int], AuditEntry] = {}
        for segment in self._segments():
            for entry in _entries(segment) or ():
                # One that another writer's segment came between stands twice: with its outcome, and as it was begun.
                if entry.outcome is not None or (entry.at, entry.epoch) not in found:
                    found[entry.at, entry.epoch] = entry
        return sorted(found.values(), key=lambda e: e.at)

    def _repeats(self, entry: AuditEntry) -> bool:
        """Whether an entry that was only begun says what the last one said that came to its end."""
        last = self._last
        return last is not None and last.same(_with_outcome_of(entry, last))

    def _tell(self, entry: AuditEntry) -> None:
        state = "begun" if entry.outcome is None else "concluded"
        # The policy is bound where the loop runs; whoever reads these lines alone wants it in each.
        audit_log.info(state, policy=f"{self._namespace}/{self._policy}", **audit_codec.to_json(entry))

    def _keep(self, entry: AuditEntry) -> None:
        self._waiting.append(entry)
        try:
            self._write()
        except BellwetherError as error:
            if not self._ailing:
                log.warning("the audit trail cannot be written; it goes on in the log", why=str(error))
            self._ailing = True
            return
        self._ailing = False
        self._written = self._clock.monotonic()

    def _write(self) -> None:
        """Write what waits. A segment that somebody else has written meanwhile is read again."""
        for _ in range(_ATTEMPTS):
            segments = self._segments()
            current = segments[-1] if segments else None
            try:
                opened = self._put(current, list(self._waiting))
            except Conflict:
                continue
            self._waiting.clear()
            if opened:
                self._retire(self._segments())
            return
        raise Transient(f"configmap {self._namespace}/{self._name}: another writer was quicker {_ATTEMPTS} times")

    def _put(self, current: Object | None, new: list[AuditEntry]) -> bool:
        """Write the current segment, or open the next one where it is full or damaged; True when one was opened."""
        number = _number(current) if current is not None else 0
        standing = _entries(current) if current is not None else None
        if current is None or standing is None:
            self._api.create(CONFIG_MAPS, self._namespace, self._body(number + 1, _latest(new)))
            return True
        places = {(e.at, e.epoch): place for place, e in enumerate(standing)}
        full = len(standing) >= FULL or len(_packed(current)) >= FULL_CHARACTERS
        kept, further = list(standing), []
        for entry in new:
            place = places.get((entry.at, entry.epoch))
            if place is not None:
                kept[place] = entry  # what was begun has become this
            elif full:
                further.append(entry)
            else:
                places[entry.at, entry.epoch] = len(kept)
                kept.append(entry)
        if kept != standing:
            body = self._body(number, kept)
            body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            try:
                self._api.replace(CONFIG_MAPS, self._namespace, body)
            except NotFound as error:
                raise Conflict(f"configmap {self._namespace}/{body['metadata']['name']} is gone") from error
        if further:
            self._api.create(CONFIG_MAPS, self._namespace, self._body(number + 1, _latest(further)))
        return bool(further)

    def _retire(self, segments: list[Object]) -> None:
        """Remove the oldest segments beyond the count, and those whose last entry is older than the age."""
        oldest = self._clock.now() - timedelta(days=KEPT_DAYS)
        for place, segment in enumerate(segments[:-1]):
            if place < len(segments) - SEGMENTS or _until(segment) < oldest:
                try:
                    self._api.delete(CONFIG_MAPS, self._namespace, segment["metadata"]["name"])
                except NotFound:
                    continue

    def _segments(self) -> list[Object]:
        """The trail's segments, the oldest first."""
        found = self._api.list(CONFIG_MAPS, self._namespace, self._labels)
        mine = [o for o in found if o["metadata"]["name"].rpartition(".")[0] == self._name]
        return sorted(mine, key=_number)

    def _body(self, number: int, entries: list[AuditEntry]) -> Object:
        until = max(e.last or e.at for e in entries).isoformat(timespec="seconds")
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{self._name}.{number}",
                "labels": dict(self._labels),
                "annotations": {"bellwether.dev/policy": self._policy},
            },
            "data": {"entries": str(len(entries)), "until": until},
            "binaryData": {"entries.z": base64.b64encode(audit_codec.pack(entries)).decode()},
        }


def _latest(entries: list[AuditEntry]) -> list[AuditEntry]:
    """Each entry as it was last."""
    return list({(e.at, e.epoch): e for e in entries}.values())


def _with_outcome_of(entry: AuditEntry, other: AuditEntry) -> AuditEntry:
    return replace(entry, outcome=other.outcome)


def _packed(segment: Object) -> str:
    return str((segment.get("binaryData") or {}).get("entries.z", ""))


def _entries(segment: Object) -> list[AuditEntry] | None:
    """What a segment holds; None when it is damaged."""
    try:
        return audit_codec.unpack(base64.b64decode(_packed(segment)), f"configmap {segment['metadata']['name']}")
    except (Terminal, ValueError) as error:
        log.warning("passed over", what=str(error))
        return None


def _number(segment: Object) -> int:
    text = str(segment["metadata"]["name"]).rpartition(".")[2]
    return int(text) if text.isdigit() else 0


def _until(segment: Object) -> datetime:
    try:
        return datetime.fromisoformat(str(segment["data"]["until"]))
    except (KeyError, ValueError):
        return datetime.fromisoformat(str(segment["metadata"].get("creationTimestamp", "9999-12-31T00:00:00+00:00")))
