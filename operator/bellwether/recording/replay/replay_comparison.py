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

from bellwether.recording.replay.recorded_status import Word
from bellwether.recording.traces.trace_lines import text_of

SLACK_SECONDS = 3.0
"""The operator writes its status after a turn, and the recorder polls it: so much later may a word be seen."""

BRIEF_SECONDS = 1.5
"""A word that stood no longer may be seen by one of the two alone, as both look about once a second."""

Words = Sequence[tuple[datetime, dict[int, Word]]]


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


def differences(said: Words, replayed: Words, slack_seconds: float = SLACK_SECONDS) -> list[Difference]:
    """What differs, in order of time and broker. Empty where the recording has no word of the operator."""
    found: list[Difference] = []
    brokers = {b for _, words in said for b in words}
    for broker in sorted(brokers):
        found += _of_one(broker, _spoken(said, broker), _heard_out(_spoken(replayed, broker)), slack_seconds)
    return sorted(found, key=lambda d: (d.at, d.broker))


def _spoken(words: Words, broker: int) -> list[tuple[datetime, Word]]:
    """One broker's words, each when it was first said."""
    spoken: list[tuple[datetime, Word]] = []
    for at, said in words:
        word = said.get(broker)
        if word is not None and (not spoken or spoken[-1][1] != word):
            spoken.append((at, word))
    return spoken


def _heard_out(replayed: list[tuple[datetime, Word]]) -> list[tuple[datetime, Word]]:
    """The replay's words from when it first had evidence: a recorder, too, must first hear each prober's Lease."""
    first = next((i for i, (_, word) in enumerate(replayed) if word.state != "Unknown"), 0)
    return replayed[first:]


def _of_one(
    broker: int, said: list[tuple[datetime, Word]], replayed: list[tuple[datetime, Word]], slack: float
) -> list[Difference]:
    found = []
    matcher = SequenceMatcher(None, [w for _, w in said], [w for _, w in replayed], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            lost = [Difference(at, broker, f"was called {w}; the replay does not") for at, w in _lasting(said, a, b)]
            new = [Difference(at, broker, f"is called {w}; the operator did not") for at, w in _lasting(replayed, c, d)]
            found += lost + new
            continue
        for (then, word), (now, _) in zip(said[a:b], replayed[c:d], strict=True):
            late = (now - then).total_seconds()
            # What stood when the recording began was said at a time that nobody recorded.
            if abs(late) > slack and then is not said[0][0]:
                text = f"is called {word} {abs(late):.1f} s {'later' if late > 0 else 'earlier'} than then"
                found.append(Difference(now, broker, text))
    return found


def _lasting(spoken: list[tuple[datetime, Word]], first: int, end: int) -> list[tuple[datetime, Word]]:
    """Those of some words that stood for long enough to be seen by both."""
    ends = [at for at, _ in spoken[1:]]
    brief = timedelta(seconds=BRIEF_SECONDS)
    return [spoken[i] for i in range(first, end) if i >= len(ends) or ends[i] - spoken[i][0] > brief]
