"""Logs: one event a line, JSON or for a person's console, ours and the libraries' alike, with secrets taken out.

Every composition root calls ``configure`` once, first. A JSON line has ``time``, ``level``, ``logger`` and ``event``, a
traceback is one field, ``exception``; each line has the fields bound by the thread (policy, broker, epoch). A value is
hidden by the name of its key, at any depth (invariant 11). A repeated warning is logged once, when it
changes, and else every ten minutes with its count.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from types import TracebackType
from typing import Any, Literal, TextIO

import structlog

Format = Literal["auto", "json", "console"]

HIDDEN = "<hidden>"
_SECRET = re.compile(
    r"passw|secret|token|credential|authori[sz]ation|jaas|private.?key|api.?key|key.?data|kubeconfig", re.I
)
# Names that point at a secret without holding one.
_HARMLESS = re.compile(r"(secret|key)_?(name|ref)$", re.I)


def configure(log_format: Format = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Send all logs to ``stream`` (standard error); ``auto`` is the console's form on a terminal, else JSON."""
    out = stream if stream is not None else sys.stderr
    console = log_format == "console" or (log_format == "auto" and out.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        without_nothing,
        redact,
    ]
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=out.isatty(), timestamp_key="time")
        if console
        else structlog.processors.JSONRenderer(default=str)
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
        )
    )
    handler.addFilter(LogDedup())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    logging.captureWarnings(True)
    # A hook that is already installed, as by a test runner, stays.
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _on_uncaught
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _on_thread
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _on_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, where: str = "process"
) -> None:
    """Log an uncaught exception as one line instead of a page of text."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    structlog.get_logger("bellwether").critical("uncaught_exception", where=where, exc_info=error)


def _on_thread(died: threading.ExceptHookArgs) -> None:
    if died.exc_type is not SystemExit and died.exc_value is not None:
        name = died.thread.name if died.thread is not None else "unknown"
        _on_uncaught(died.exc_type, died.exc_value, died.exc_traceback, f"thread {name}")


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide values under keys that name a secret."""
    for key in list(event):
        if not key.startswith("_"):
            event[key] = _clean(key, event[key])
    return event


def without_nothing(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leave out what has no value."""
    for key in [k for k, v in event.items() if v is None]:
        del event[key]
    return event


def _clean(key: str, value: Any) -> Any:
    if _SECRET.search(key) and not _HARMLESS.search(key):
        return HIDDEN
    if isinstance(value, Mapping):
        return {k: _clean(str(k), v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", v) for v in value]
    return value


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
        self._told: dict[bytes, tuple[float, int]] = {}

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


def _key(record: logging.LogRecord) -> bytes:
    """A digest: a long text is not kept for the time in which it may come again."""
    if isinstance(record.msg, dict):
        fields: object = sorted((k, v) for k, v in record.msg.items() if not k.startswith("_") and k not in _PASSING)
    else:
        fields = _NUMBERS.sub("#", record.getMessage())
    said = repr((record.name, record.levelno, fields))
    return hashlib.blake2b(said.encode("utf-8", "backslashreplace"), digest_size=16).digest()


def _add(record: logging.LogRecord, left_out: int) -> None:
    msg: Any = record.msg
    if isinstance(msg, dict):
        record.msg = {**msg, REPEATED: left_out}
    else:
        setattr(record, REPEATED, left_out)
