"""Scope of a policy: the topics whose leaders it may move, by patterns of names.

Patterns are globs: ``*`` and ``?``. Each is matched in time proportional to its length times that of the name, without
backtracking over earlier wildcards, so that no pattern can hold a reconcile up; a regular expression could.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Scope:
    """The topics that match a pattern of ``included``, or all where that is empty, but those of ``excluded``."""

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every topic is in scope."""
        return not (self.included or self.excluded)

    def covers(self, topic: str) -> bool:
        """Whether a topic is in scope."""
        inside = not self.included or any(fnmatchcase(topic, pattern) for pattern in self.included)
        return inside and not any(fnmatchcase(topic, pattern) for pattern in self.excluded)


EVERY_TOPIC = Scope()
