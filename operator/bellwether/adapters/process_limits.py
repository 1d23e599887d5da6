"""What the clusters and stores of a process may take together, as each one alone may take more than its share.

Used by all that decode answers and documents of other servers, and by those that keep what was decoded.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from weakref import WeakKeyDictionary

from bellwether.ports.errors import Terminal

OWN_INSTALLATION = "give it an installation of its own"

_SMALL = 1 << 18
_decoding = threading.Lock()


def one_large(size: int) -> AbstractContextManager[object]:
    """Decode an answer of so many bytes inside: a large one, which may take 27 times its size, alone in the process."""
    return _decoding if size > _SMALL else nullcontext()


class ProcessSum:
    """How many ``what`` (brokers, partitions) the readers of a process hold; safe to share between threads."""

    def __init__(self, what: str, remedy: str = OWN_INSTALLATION) -> None:
        self._what, self._remedy = what, remedy
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[object, int] = WeakKeyDictionary()

    def hold(self, owner: object, number: int, most: int) -> None:
        """Raises Terminal, and counts nothing for this owner, if it is the largest of those that are together too many.

        Asked at each read: the largest is refused when the sum is exceeded, not when its cluster changes next.
        """
        with self._lock:
            self._held[owner] = number
            total, largest = sum(self._held.values()), max(self._held.values())
            if total <= most or number < largest:
                return
            del self._held[owner]
        raise Terminal(
            f"the clusters of all policies have {total:,} {self._what}, {most:,} can be held, and this is the largest"
            f" with {number:,}: {self._remedy}"
        )
