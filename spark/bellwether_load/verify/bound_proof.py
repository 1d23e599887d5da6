"""What decides a bound: the brokers that cannot go lower, what they must carry, and their heaviest partitions.

Values, and the same as text for a person. Made by ``proof_search``, shown by ``verify-plan``, status and page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_NAMED = 6
"""Brokers that a text names; of more it names the first ones and their number."""

STAYS, NO_OTHER, NO_MOVE = "must stay", "no other broker may lead it", "needs a further move"
ANYWHERE = "too heavy for any broker"


@dataclass(frozen=True, slots=True)
class ProvingPartition:
    """A partition that the proving brokers keep: why, and at least which share of the bound it is on its broker."""

    name: str
    brokers: tuple[int, ...]
    load: int
    share: float
    why: str


@dataclass(frozen=True)
class BoundProof:
    """Why no plan has a lower maximum than the bound.

    ``brokers`` cannot go lower, taken together; ``opened`` counts the open brokers. ``parts``: of what they must carry,
    the shares of following, of partitions that must stay, of those that no other broker may lead, and of those that
    only a further move could take away. ``alone``: the bound is that of the first of ``partitions``, on any broker.
    ``most_moves``: the cap, if the bound rests on it.
    """

    brokers: tuple[int, ...]
    opened: int
    parts: Mapping[str, float]
    partitions: tuple[ProvingPartition, ...] = ()
    alone: bool = False
    most_moves: int | None = None

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        partitions = [
            {"partition": p.name, "brokers": list(p.brokers), "load": p.load, "share": p.share, "why": p.why}
            for p in self.partitions
        ]
        return {
            "brokers": list(self.brokers),
            "parts": dict(self.parts),
            "partitions": partitions,
            "alone": self.alone,
            "mostMoves": self.most_moves,
            "text": self.text,
        }

    @property
    def text(self) -> str:
        """The proof in two or three sentences."""
        if not self.brokers:
            return "The bound is 0: nothing that is measured must stay on any broker."
        if self.alone:
            one = self.partitions[0]
            best = f"broker {self.brokers[0]}, the best one for it,"
            rest = "" if one.share > 0.995 else f" The rest is what {best} carries in any case."
            return f"{one.name} alone needs {_percent(one.share)} of the bound, whichever broker leads it.{rest}"
        cap = "" if self.most_moves is None else f"With {self.most_moves:,} changed leaders "
        if len(self.brokers) == self.opened and not self.parts:
            return f"All {self.opened:,} open brokers prove the bound: it is their mean."
        said = f"{cap}{proving_brokers(self.brokers, self.opened, start=not cap)} cannot go lower"
        parts = [f"{_percent(share)} {_PARTS[kind]}" for kind, share in self.parts.items() if share >= 0.005]
        said += f": of what {'it' if len(self.brokers) == 1 else 'they'} must carry, {_listed(parts)}."
        heavy = [p for p in self.partitions[:3] if p.share >= 0.1]
        if heavy:
            said += f" {heavy[0].name} alone needs {_percent(heavy[0].share)} of the bound"
            said += "".join(f", {p.name} {_percent(p.share)}" for p in heavy[1:]) + "."
        return said


_PARTS = {
    "following": "is following",
    STAYS: "are leaders that must stay",
    NO_OTHER: "are leaders that no other broker may have",
    NO_MOVE: "are leaders that would need further moves",
}


def proving_brokers(brokers: Sequence[int], opened: int, *, start: bool = True) -> str:
    """Brokers as a subject: all of a few, the number and the first ones of many."""
    word = "roker" if len(brokers) == 1 else "rokers"
    word = ("B" if start else "b") + word
    if len(brokers) <= MOST_NAMED:
        return f"{word} {_listed([str(b) for b in brokers])}"
    first = ", ".join(map(str, brokers[:3]))
    return f"{len(brokers):,} of {opened:,} open brokers ({first}, …) together"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share < 0.995 or share >= 0.9995 else "over 99 %"
