"""Logs: one event a line, JSON or for a person's console, ours and the libraries' alike, with secrets taken out.

Every composition root calls ``configure`` once, first. A value is hidden by the name of its key, at any depth (law 11).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
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
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        without_nothing,
        redact,
    ]
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=out.isatty())
        if console
        else structlog.processors.JSONRenderer(default=str)
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide whatever stands under a key that names a secret."""
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
