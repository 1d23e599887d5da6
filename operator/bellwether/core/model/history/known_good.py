"""Seconds for which a broker, a log directory or a link is known to be good: the only time that counts as recovery.

In: one call for each read. Out: a value that the next read continues. Absence of any kind (of the operator, of a
prober, of metadata) adds nothing and takes nothing; a failure starts again from ``NOT_YET_GOOD``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bellwether.core.model.log_dirs import LogDir
from bellwether.core.model.undo_record import Link

MOST_BETWEEN_READS = 10.0
"""Most seconds that count between two good reads: after so long without renewal a signal of probers is stale."""

PassingSince = Mapping[tuple[str, str], datetime | None]
"""Since when sources pass, each by its own clock: by type and name of the source."""

_NO_SOURCE: PassingSince = {}


@dataclass(frozen=True, slots=True)
class KnownGood:
    """Seconds known to be good so far. ``read_at`` is the last read, if it was good and this process made it.

    ``passing`` is what the sources said last: one that passes since another time has failed in between. Only times of
    one source are compared with each other, so a prober's clock does not matter.
    """

    seconds: float = 0.0
    read_at: datetime | None = field(default=None, compare=False)
    passing: PassingSince = field(default_factory=dict, compare=False, repr=False)
    missing: float = field(default=0.0, compare=False)
    """Seconds until it is enough; 0 while none count."""

    def failed_since(self, passing: PassingSince) -> bool:
        """Whether a source passes since another time than it said last; a new one is not compared."""
        return any(self.passing.get(source, since) != since for source, since in passing.items())

    def after(self, good: bool | None, now: datetime, enough: float, passing: PassingSince = _NO_SOURCE) -> KnownGood:
        """After a read that was good, or not, or that shows neither (None). No more counts than is ``enough``.

        The time since the last read counts if that was good, too. A source that says nothing now is remembered by what
        it said last.
        """
        if good is False:
            return NOT_YET_GOOD
        known = NOT_YET_GOOD if self.failed_since(passing) else self
        if good is None:
            return KnownGood(known.seconds, None, {**self.passing, **passing})
        passed = (now - known.read_at).total_seconds() if known.read_at is not None else 0.0
        seconds = known.seconds + min(max(passed, 0.0), MOST_BETWEEN_READS)
        seconds = min(seconds, max(known.seconds, enough))
        return KnownGood(seconds, now, passing, max(enough - seconds, 0.0))


NOT_YET_GOOD = KnownGood()

Good = LogDir | Link | int
"""What may be known to be good: a demoted log directory, a broken link, or the disk of a held broker, by its id."""
KnownGoods = Mapping[Good, KnownGood]
