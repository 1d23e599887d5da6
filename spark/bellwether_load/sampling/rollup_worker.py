"""Roll up the hours that have ended, and remove old files: a thread of the sampler's process.

In: a store, the number of days to keep, or None to keep all. Out: a rollup an hour; samples are kept for two days, in
which late ones still count, and rollups as long as plans use them. Started by ``bellwether sample``. An error is logged
once and the work is retried; sampling rounds do not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime

import structlog

from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples.sample_files import AHEAD, RoundFile, list_rounds

PERIOD_SECONDS = 300.0
SAMPLE_HOURS = 48
"""Hours with samples whose samples are kept: so late may samples be, and so long may rollups fail."""
FORGOTTEN_SECONDS = 6 * 3_600
"""An interrupted write leaves a file that is never read."""
_HOUR = 3_600


class RollupWorker:
    """Rollups of a store. ``start`` it once the first round is written, and ``stop`` it at the end."""

    def __init__(self, store: Store, uri: str, keep_days: int | None, clock: Clock, metrics: SamplingMetrics) -> None:
        self._store = store
        self._uri = uri
        self._keep_days = keep_days
        self._clock = clock
        self._metrics = metrics
        self._log = structlog.get_logger(__name__)
        self._said: set[str] = set()
        self._failure = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start, unless it is running."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rollups", daemon=True)
            self._thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End after the hour that is being rolled up, or leave it unwritten."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def problems(self) -> list[str]:
        """Reports that the thread has ended by itself. Does not block."""
        thread = self._thread
        return [] if thread is None or thread.is_alive() or self._stop.is_set() else ["the rollups' thread has ended"]

    def once(self) -> None:
        """Roll up and remove what is due. A failure is logged when it begins, or is another one."""
        failure, unexpected = "", None
        try:
            self._once(self._clock.now())
        except (Transient, Terminal) as error:
            failure = str(error)
        except Exception as error:  # else the thread would end, and rollups with it
            failure, unexpected = repr(error), error
        if failure:
            self._metrics.refused.inc()
            if failure != self._failure:
                self._log.warning("rollups_failed", error=failure, exc_info=unexpected)
        self._failure = failure

    def _once(self, now: datetime) -> None:
        listing = list_rounds(self._store, now)
        if listing.ahead:
            self._warn("ahead", "samples_ahead", files=len(listing.ahead), first=listing.ahead[0].path)
        kept: set[str] = set()
        for due in due_hours(self._store, listing):
            if self._stop.is_set():
                return
            if not due.settled(now):
                kept |= {file.path for file in due.files}
                continue
            done = roll_hour(self._uri, due)
            if not done.bytes:
                kept |= {file.path for file in due.files}
                continue
            hour = datetime.fromtimestamp(due.hour, UTC).isoformat()
            self._log.info("hour_rolled_up", hour=hour, partitions=done.rows, bytes=done.bytes)
            if done.skipped:
                self._warn(done.skipped[0], "samples_skipped", files=len(done.skipped), error=done.skipped[0])
        self._expire(now, listing.rounds, kept)

    def _expire(self, now: datetime, listed: Sequence[RoundFile], kept: Set[str]) -> None:
        """Remove old files, of samples those that are not ``kept``, of rollups those without samples: others would be
        made again. Hours and days with files are counted, not those of the calendar: a clock that runs ahead for a
        moment must not take the history along. What such a clock has left is neither counted nor removed."""
        done = [file for file in listed if file.path not in kept]
        old = _older({file.at // _HOUR for file in done}, SAMPLE_HOURS)
        rounds = {file.path for file in done if file.at // _HOUR in old}
        current = [file for file in list_rollups(self._store) if file.hour <= now.timestamp() + AHEAD]
        days = _older({file.hour // _HOUR // 24 for file in current}, self._keep_days)
        sampled = {file.at // _HOUR for file in listed if file.path not in rounds}
        rollups = [
            file.path for file in current if file.hour // _HOUR // 24 in days and file.hour // _HOUR not in sampled
        ]
        left = [
            file.path
            for file in self._store.list(temporary=True)
            if file.modified is not None and (now - file.modified).total_seconds() > FORGOTTEN_SECONDS
        ]
        for path in (*rounds, *rollups, *left):
            self._store.delete(path)
        for folder in {path.rsplit("/", 1)[0] for path in (*rounds, *rollups)}:
            self._store.delete_empty(folder)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.once()
            self._stop.wait(PERIOD_SECONDS)

    def _warn(self, about: str, event: str, **fields: object) -> None:
        """Log a problem once."""
        if about not in self._said:
            self._said.add(about)
            self._log.warning(event, **fields)


def _older(found: Iterable[int], keep: int | None) -> set[int]:
    return set(sorted(found)[:-keep]) if keep is not None else set()
