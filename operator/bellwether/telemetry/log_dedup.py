"""Log deduplication: a repeated warning is logged once, on changes, and else every few minutes with its count.

In: log records of warning level and above, ours and the libraries'. Out: whether each is to be written. Sits on the
log's one handler, so callers need not know of it.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Any

AGAIN_SECONDS = 600.0
_MOST = 2000
# What differs from one telling of the same trouble to the next.
_PASSING = frozenset({"time", "exception", "seconds"})
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
REPEATED = "repeated"


class LogDedup(logging.Filter):
    """Lets a record pass unless the same one passed lately; the next one says ``repeated``: how many were left out.

    The same is: logger, level and all fields. Numbers of other libraries are ignored: they are ports and times.
    """

    def __init__(self, again_seconds: float = AGAIN_SECONDS, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._again = again_seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._told: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        if record.levelno < logging.WARNING:
            return True
        key, now = _key(record), self._monotonic()
        with self._lock:
            at, left_out = self._told.get(key, (float("-inf"), 0))
            if now - at < self._again:
                self._told[key] = (at, left_out + 1)
                return False
            if len(self._told) >= _MOST:
                self._told = {k: v for k, v in self._told.items() if now - v[0] < self._again}
                if len(self._told) >= _MOST:
                    self._told.clear()
            self._told[key] = (now, 0)
        if left_out:
            _add(record, left_out)
        return True


def _key(record: logging.LogRecord) -> object:
    if isinstance(record.msg, dict):
        fields = sorted((k, repr(v)) for k, v in record.msg.items() if not k.startswith("_") and k not in _PASSING)
        return record.name, record.levelno, tuple(fields)
    return record.name, record.levelno, _NUMBERS.sub("#", record.getMessage())


def _add(record: logging.LogRecord, left_out: int) -> None:
    msg: Any = record.msg
    if isinstance(msg, dict):
        record.msg = {**msg, REPEATED: left_out}
    else:
        setattr(record, REPEATED, left_out)
