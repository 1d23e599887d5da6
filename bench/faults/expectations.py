"""What must come of a fault, and whether it did: pure, so that the judge of the judge is tested without a broker.

In: an ``Expected``, stated beforehand in ``scenarios``, and the ``Account`` of what was said and seen. Out: sentences
on what is wrong, none when all is right. Called by ``playing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from faults.accounts import Account, Word

NEVER_OF_OTHERS = ("Sick", "Down")
"""What a broker that nothing was done to may not be called at any time."""


class Demotion(StrEnum):
    """What is to become of the leadership of the brokers that a scenario is about."""

    MUST = "demoted"
    NEVER = "not demoted"
    STAYS = "stays demoted"
    MAY = "demoted where it keeps up as a follower"


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come of a fault.

    ``verdicts`` are the words of which each of ``brokers`` must get one, and keep it: a state, or state and
    reason (``Sick/StorageSlow``); being called sick otherwise is wrong, but for the words of ``passing``, on the way
    there. ``quiet`` forbids everything that would page a person. ``leaderless`` asks that they lead nothing in the end,
    in any way. ``dead`` are brokers that were killed: they must be called Down.
    """

    brokers: tuple[int, ...]
    verdicts: tuple[str, ...]
    demotion: Demotion = Demotion.NEVER
    passing: tuple[str, ...] = ()
    leaderless: bool = False
    quiet: bool = False
    dead: tuple[int, ...] = ()

    def __str__(self) -> str:
        words = " or ".join(verdict.replace("/", " (") + (")" if "/" in verdict else "") for verdict in self.verdicts)
        down = "".join(f", {broker} Down" for broker in self.dead)
        return f"{words}, {self.demotion}{', no page' if self.quiet else ''}{down}"

    @property
    def all_leaders_go(self) -> bool:
        """Whether the brokers must lead nothing in the end."""
        return self.leaderless or self.demotion in (Demotion.MUST, Demotion.STAYS)

    def says(self, word: Word | None) -> bool:
        """Whether this is one of the words that are right."""
        return word is not None and any(word.matches(verdict) for verdict in self.verdicts)

    def reached(self, seen: Account) -> bool:
        """Whether everything that must come has come; what must never come is for ``wrong`` to say."""
        if not all(self.says(seen.word(broker)) for broker in self.brokers) or self.not_down(seen):
            return False
        if self.demotion is Demotion.MUST and not all(broker in seen.demoted_at for broker in self.brokers):
            return False
        return not self.all_leaders_go or all(seen.leads(broker) == 0 for broker in self.brokers)

    def not_down(self, seen: Account) -> list[int]:
        """Dead brokers that are not called Down."""
        return [broker for broker in self.dead if (word := seen.word(broker)) is None or word.state != "Down"]

    def seconds_to_verdict(self, seen: Account) -> float | None:
        """From the fault until the last of the brokers had its word; ``None`` where none changed, or one never came."""
        firsts = [seen.first(broker, self.says) for broker in self.brokers]
        if any(first is None for first in firsts) or all(self.says(seen.at_first(b)) for b in self.brokers):
            return None
        return max(first for first in firsts if first is not None)

    def seconds_to_figure(self, seen: Account) -> float | None:
        """From the fault until each broker was Suspect or Sick with what its clients lost; ``None`` if never."""
        found = [seen.figure_at.get(broker) for broker in self.brokers]
        return None if None in found else max(at for at in found if at is not None)

    def seconds_to_zero_leaders(self, seen: Account) -> float | None:
        """From the fault until the last of the brokers led nothing; ``None`` where one still leads."""
        if not self.all_leaders_go or any(broker not in seen.leaderless_at for broker in self.brokers):
            return None
        return max(seen.leaderless_at[broker] for broker in self.brokers)

    def healthy_demoted(self, seen: Account) -> list[int]:
        """Brokers that were demoted and should not have been."""
        meant = set() if self.demotion is Demotion.NEVER else set(self.brokers)
        return sorted((set(seen.demoted_at) | set(seen.displaced_at)) - meant)


def wrong(expected: Expected, seen: Account) -> list[str]:
    """What is not as it must be, in sentences; none when everything is."""
    words = {broker: seen.word(broker) for broker in expected.brokers}
    right = " or ".join(expected.verdicts)
    found = [f"broker {b} is called {w or 'nothing'}, not {right}" for b, w in words.items() if not expected.says(w)]
    found += [f"broker {b} is dead and is called {seen.word(b) or 'nothing'}" for b in expected.not_down(seen)]
    if healthy := expected.healthy_demoted(seen):
        found.append(f"demoted without need: {', '.join(map(str, healthy))}")
    found += _called_wrongly(expected, seen)
    if expected.demotion is Demotion.MUST:
        found += [f"broker {b} was not demoted" for b in expected.brokers if b not in seen.demoted_at]
    if expected.demotion is Demotion.STAYS:
        found += [f"broker {b} was promoted while nothing was known" for b in expected.brokers if b in seen.free_at]
    if expected.all_leaders_go:
        leads = {broker: seen.leads(broker) for broker in expected.brokers}
        found += [f"broker {b} still leads {'?' if n is None else n}" for b, n in leads.items() if n != 0]
    if expected.quiet and seen.pages:
        found.append(f"paged: {'; '.join(seen.pages[:3])}")
    return found


def _called_wrongly(expected: Expected, seen: Account) -> list[str]:
    allowed = (*expected.verdicts, *expected.passing)
    found: list[str] = []
    for broker, said in sorted(seen.words.items()):
        forbidden = NEVER_OF_OTHERS if broker not in (*expected.brokers, *expected.dead) else ("Sick",)
        may = allowed if broker in expected.brokers else ()
        bad = (word for _, word in said if word.state in forbidden and not any(map(word.matches, may)))
        words = dict.fromkeys(bad)
        found += [f"broker {broker} was called {word}" for word in words]
    return found
