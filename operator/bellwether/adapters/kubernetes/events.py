"""Kubernetes Events: news for ``kubectl describe`` and ``kubectl get events``, each told once.

In: the object that an event is about, a reason and a message for a person. Out: at most one Event for the same words in
ten minutes. Events expire and may be lost; nothing depends on them. Called by ``handlers``.
"""

from __future__ import annotations

import threading
import uuid

import structlog

from bellwether.adapters.kubernetes.client import EVENTS, KubernetesClient, Object
from bellwether.adapters.kubernetes.leases import micro_time
from bellwether.ports import Clock, Terminal, Transient

log = structlog.get_logger(__name__)

_NOTE_LENGTH = 1024


class EventWriter:
    """Posts Events. ``instance`` names this process (the pod); the same words are told once in ``quiet_seconds``."""

    def __init__(self, api: KubernetesClient, clock: Clock, instance: str, quiet_seconds: float = 600.0) -> None:
        self._api = api
        self._clock = clock
        self._instance = instance
        self._quiet = quiet_seconds
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str, str], float] = {}

    def post(self, about: Object, reason: str, message: str, *, warning: bool = False, again: bool = False) -> bool:
        """Post one Event about an object; True when it was posted, not told lately or refused.

        ``again`` posts it even if it was told lately: what happens twice is told twice.
        """
        metadata, now = about["metadata"], self._clock.monotonic()
        key = (str(metadata.get("uid") or metadata["name"]), reason, message)
        with self._lock:
            self._told = {told: at for told, at in self._told.items() if now - at < self._quiet}
            if key in self._told and not again:
                return False
            self._told[key] = now
        event: Object = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}",
                "namespace": metadata["namespace"],
            },
            "eventTime": micro_time(self._clock.now()),
            "reportingController": "bellwether.dev/operator",
            "reportingInstance": self._instance[:128],
            "action": "Report",
            "reason": reason[:128],
            "note": message[:_NOTE_LENGTH],
            "type": "Warning" if warning else "Normal",
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                **({"uid": metadata["uid"]} if metadata.get("uid") else {}),
            },
        }
        try:
            self._api.create(EVENTS, metadata["namespace"], event)
        except (Transient, Terminal) as error:
            log.warning("an event was not posted", reason=reason, why=str(error))
            with self._lock:
                self._told.pop(key, None)
            return False
        return True
