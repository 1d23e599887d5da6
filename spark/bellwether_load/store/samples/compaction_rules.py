"""Which of a day's files count, so that no round is lost and none counts twice, wherever a compaction was cut off.

A compacted file names the rounds that it holds. It is written first; files that it covers fully are removed later. In
between, and permanently after a crash, both exist. Several processes may compact at once: two of their files are rivals
if they share a round and each has rounds that the other lacks. No file is removed because of a file that has a rival,
and a rival is removed only if another file holds all of it. Each file is written before removals are decided, so at
most one of two rivals was ever seen without the other, and the content of the other still exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

Rounds = frozenset[str]

# Rivals result from two processes that compacted the same hour; more than a few are forged.
_MOST_RIVALS = 12


def current(files: Mapping[str, Rounds]) -> tuple[str, ...]:
    """The files to read, sorted: together they hold every round that any file holds, each one once.

    ``files`` gives the rounds of every readable file; a round's own file holds that one. Of rivals those are left out
    that is not needed. Without such a choice, which the rules above cannot cause, rivals stay, and a
    round may count twice.
    """
    settled = _settled(dict(files), frozenset(chain.from_iterable(files.values())), len(rivals(files)))
    left = dict(files) if settled is None else settled
    return tuple(sorted(path for path in left if _holder(path, left) is None))


def rivals(files: Mapping[str, Rounds]) -> frozenset[str]:
    """The files that share a round with another one while each of the two has rounds of its own."""
    return frozenset(path for pair in _pairs(files) for path in pair)


def superfluous(files: Mapping[str, Rounds]) -> dict[str, str]:
    """The files that may go, each with the one that holds all of its rounds and has no rival.

    ``files`` must have been listed after the last of them was written. They stay superfluous for ever, so they may go
    as late as one likes. Of two files alike the later name goes.
    """
    disputed = rivals(files)
    found = {path: _holder(path, files, disputed) for path in files}
    return {path: holder for path, holder in found.items() if holder is not None}


def _settled(left: dict[str, Rounds], everything: Rounds, count: int) -> dict[str, Rounds] | None:
    """The files without redundant rivals; None if rivals remain in every choice."""
    pair = next(iter(_pairs(left)), None)
    if pair is None:
        return left
    if count > _MOST_RIVALS:
        return None
    for loser in sorted(pair, reverse=True):
        rest = {path: held for path, held in left.items() if path != loser}
        if frozenset(chain.from_iterable(rest.values())) == everything:
            settled = _settled(rest, everything, count)
            if settled is not None:
                return settled
    return None


def _pairs(files: Mapping[str, Rounds]) -> Iterable[tuple[str, str]]:
    many = sorted(path for path, held in files.items() if len(held) > 1)
    for number, one in enumerate(many):
        for other in many[number + 1 :]:
            a, b = files[one], files[other]
            if a & b and a - b and b - a:
                yield one, other


def _holder(path: str, files: Mapping[str, Rounds], disputed: frozenset[str] = frozenset()) -> str | None:
    """The largest undisputed file that holds all that this one does; of two alike the earlier name is the holder."""
    own = files[path]
    holding = [
        other
        for other, held in files.items()
        if other not in disputed and len(held) >= len(own) and (own < held or (own == held and other < path))
    ]
    return min(holding, key=lambda other: (-len(files[other]), other), default=None)
