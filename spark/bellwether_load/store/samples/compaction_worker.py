"""Compaction worker: a thread of the sampler's process that compacts a store's files and removes old ones.

In: a store, the number of days to keep. Out: files compacted and days removed, periodically. Started by ``bellwether
sample``. An error is logged once and the work is retried; sampling rounds do not wait for it.
"""

from __future__ import annotations

import threading
from typing import Protocol

import structlog

from bellwether.ports.clock import Clock
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.compaction import Compactor, Stopped
from bellwether_load.store.samples.retention import expire
from bellwether_load.store.store_errors import StoreError

UPKEEP_SECONDS = 300.0


class CompactionObserver(Protocol):
    """Called with what was done, for metrics; ``telemetry.metrics.sampler_metrics`` implements it."""

    def compacted(self, size: int, removed: int) -> None:
        """Files were compacted, and files that are no longer needed were removed."""
        ...

    def expired(self, days: int) -> None:
        """That many days were removed."""
        ...

    def refused(self) -> None:
        """The store failed."""
        ...


class Upkeep:
    """Compaction of one cluster's samples. ``start`` it once the cluster is known, and ``stop`` it at the end."""

    def __init__(self, store: Store, keep_days: int, clock: Clock, observer: CompactionObserver) -> None:
        self._store = store
        self._keep_days = keep_days
        self._clock = clock
        self._observer = observer
        self._log = structlog.get_logger(__name__)
        self._said: set[str] = set()
        self._stop = threading.Event()
        self._compactor: Compactor | None = None
        self._thread: threading.Thread | None = None

    def start(self, cluster_id: str) -> None:
        """Start, unless it is running."""
        if self._thread is None:
            self._compactor = Compactor(self._store, cluster_id, self._skipped, self._stop.is_set)
            self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
            self._thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Interrupt the current work, which leaves no partial files."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def once(self) -> None:
        """Compact and remove what is due."""
        now = self._clock.now()
        try:
            if self._compactor is not None:
                done = self._compactor.run(now)
                self._observer.compacted(done.bytes, done.removed)
                if done.written:
                    self._log.info("samples_compacted", files=done.written, rows=done.rows, bytes=done.bytes)
            gone = expire(self._store, self._keep_days, now.date(), lambda day, why: self._skipped(str(day), why))
            self._observer.expired(len(gone))
            if gone:
                self._log.info("samples_expired", days=[day.isoformat() for day in gone])
        except Stopped:
            return
        except StoreError as error:
            self._observer.refused()
            self._warn("upkeep", "compaction_failed", error=str(error))
        else:
            self._said.discard("upkeep")

    def _run(self) -> None:
        while not self._stop.is_set():
            self.once()
            self._stop.wait(UPKEEP_SECONDS)

    def _skipped(self, samples: str, why: str) -> None:
        self._warn(samples, "samples_skipped", samples=samples, error=why)

    def _warn(self, about: str, event: str, **fields: str) -> None:
        """Log a problem once."""
        if about not in self._said:
            self._said.add(about)
            self._log.warning(event, **fields)
