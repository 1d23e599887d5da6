"""Compare a replay with what the operator did at the time.

In: each broker's words, with their times, from the recording and from the replay. Out: differences as sentences: words
that only one of the two said, and words that came earlier or later by more than the slack that polling and writing
take. Called by ``bellwether replay``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import Any

from bellwether.recording.recorded_status import RecordedStatus
from bellwether.recording.traces.trace_lines import text_of

SLACK_SECONDS = 3.0
"""The operator writes its status after a reconcile, and the recorder polls it: a status may be seen this much later."""

BRIEF_SECONDS = 1.5
"""A status that lasted no longer may be seen by only one of the two, as both read about once a second."""

Statuses = Sequence[tuple[datetime, dict[int, RecordedStatus]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One broker, one moment, and what is different."""

    at: datetime
    broker: int
    text: str

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S} broker {self.broker} {self.text}"

    def document(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {"at": text_of(self.at), "broker": self.broker, "text": self.text}


def differences(said: Statuses, replayed: Statuses, slack_seconds: float = SLACK_SECONDS) -> list[Difference]:
    """The differences, by time and broker. Empty if the recording has no status of the operator."""
    found: list[Difference] = []
    brokers = {b for _, statuses in said for b in statuses}
    for broker in sorted(brokers):
        found += _of_one(
            broker, _changes(said, broker), _since_first_evidence(_changes(replayed, broker)), slack_seconds
        )
    return sorted(found, key=lambda d: (d.at, d.broker))


def _changes(statuses: Statuses, broker: int) -> list[tuple[datetime, RecordedStatus]]:
    """One broker's statuses, each when it first appeared."""
    changes: list[tuple[datetime, RecordedStatus]] = []
    for at, said in statuses:
        status = said.get(broker)
        if status is not None and (not changes or changes[-1][1] != status):
            changes.append((at, status))
    return changes


def _since_first_evidence(replayed: list[tuple[datetime, RecordedStatus]]) -> list[tuple[datetime, RecordedStatus]]:
    """The replay's words from when it first had evidence: a recorder, too, must first hear each prober's Lease."""
    first = next((i for i, (_, status) in enumerate(replayed) if status.state != "Unknown"), 0)
    return replayed[first:]


def _of_one(
    broker: int,
    said: list[tuple[datetime, RecordedStatus]],
    replayed: list[tuple[datetime, RecordedStatus]],
    slack: float,
) -> list[Difference]:
    found = []
    matcher = SequenceMatcher(None, [w for _, w in said], [w for _, w in replayed], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            lost = [Difference(at, broker, f"was {w}, but not in the replay") for at, w in _lasting(said, a, b)]
            new = [Difference(at, broker, f"is {w} only in the replay") for at, w in _lasting(replayed, c, d)]
            found += lost + new
            continue
        for (then, status), (now, _) in zip(said[a:b], replayed[c:d], strict=True):
            late = (now - then).total_seconds()
            # The time of a status that existed when the recording began is unknown.
            if abs(late) > slack and then is not said[0][0]:
                text = f"is {status} {abs(late):.1f} s {'later' if late > 0 else 'earlier'} than recorded"
                found.append(Difference(now, broker, text))
    return found


def _lasting(
    changes: list[tuple[datetime, RecordedStatus]], first: int, end: int
) -> list[tuple[datetime, RecordedStatus]]:
    """The statuses that lasted long enough to be seen by both."""
    ends = [at for at, _ in changes[1:]]
    brief = timedelta(seconds=BRIEF_SECONDS)
    return [changes[i] for i in range(first, end) if i >= len(ends) or ends[i] - changes[i][0] > brief]
