"""What was said and seen of one fault, from its beginning on: verdicts, demotions, leaders, pages. Pure values.

Fed by ``witness`` with what Bellwether says and what metadata shows, in seconds since the fault; read by
``expectations``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from demo.observations import Observations

DOUBTED = ("Suspect", "Sick")
_LOST = re.compile(r"(?:clients|probes) lost [0-9.]+ s")


class Word(NamedTuple):
    """A verdict as it is in status."""

    state: str
    reason: str = ""

    def matches(self, verdict: str) -> bool:
        """Whether it is this verdict: a state, or state and reason with a slash between."""
        state, _, reason = verdict.partition("/")
        return self.state == state and reason in ("", self.reason)

    def __str__(self) -> str:
        return f"{self.state} ({self.reason})" if self.reason else self.state


@dataclass
class Account:
    """Times are seconds since the fault; each dict has the first time that something was so.

    ``displaced_at`` is metadata's own word on demotions: last in every replica order, and not so at the beginning.
    ``free_at`` is when a broker was first said not to be demoted, ``figure_at`` when it was first called Suspect or
    Sick with what its clients lost.
    """

    words: dict[int, list[tuple[float, Word]]] = field(default_factory=dict)
    demoted_at: dict[int, float] = field(default_factory=dict)
    free_at: dict[int, float] = field(default_factory=dict)
    figure_at: dict[int, float] = field(default_factory=dict)
    displaced_at: dict[int, float] = field(default_factory=dict)
    leaderless_at: dict[int, float] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)

    def hear(self, at: float, broker: int, word: Word, *, demoted: bool, message: str = "") -> None:
        """What Bellwether says of a broker."""
        if word.state in DOUBTED and _LOST.search(message):
            self.figure_at.setdefault(broker, at)
        said = self.words.setdefault(broker, [])
        if not said or said[-1][1] != word:
            said.append((at, word))
        (self.demoted_at if demoted else self.free_at).setdefault(broker, at)

    def see(self, at: float, leaders: Mapping[int, int], displaced: Iterable[int]) -> None:
        """What metadata shows."""
        self.leaders = dict(leaders)
        for broker in displaced:
            self.displaced_at.setdefault(broker, at)
        for broker, count in leaders.items():
            if count:
                self.leaderless_at.pop(broker, None)
            else:
                self.leaderless_at.setdefault(broker, at)

    def page(self, text: str) -> None:
        """Something that would wake a person; the same words once."""
        if text not in self.pages:
            self.pages.append(text)

    def word(self, broker: int) -> Word | None:
        """The last word on a broker."""
        said = self.words.get(broker)
        return said[-1][1] if said else None

    def at_first(self, broker: int) -> Word | None:
        """The verdict of a broker from before the fault."""
        said = self.words.get(broker)
        return said[0][1] if said else None

    def leads(self, broker: int) -> int | None:
        """How many partitions a broker leads; ``None`` while metadata has not been seen."""
        return self.leaders.get(broker, 0) if self.leaders else None

    def first(self, broker: int, right: Callable[[Word | None], bool]) -> float | None:
        """When the word on a broker became right for the last time; ``None`` when it is not."""
        since = None
        for at, word in self.words.get(broker, ()):
            since = (at if since is None else since) if right(word) else None
        return since


def displaced(seen: Observations) -> tuple[int, ...]:
    """The brokers that are last in every order that they are in, and were not at the start."""
    found = []
    for broker in seen.leaders():
        held = [(name, p.replicas) for name, p in seen.view.items() if broker in p.replicas and len(p.replicas) > 1]
        moved = any(seen.start[name].replicas[-1] != broker for name, _ in held)
        if moved and all(replicas[-1] == broker for _, replicas in held):
            found.append(broker)
    return tuple(found)
