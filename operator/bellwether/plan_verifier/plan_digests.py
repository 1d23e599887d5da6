"""Digests of problem and plan, from the canonical lines that ``docs/load/files.md`` defines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

LETTERS = 32


class Fingerprint:
    """SHA-256 over lines that each end in a line feed."""

    def __init__(self, first: str) -> None:
        self._hashed = hashlib.sha256(f"{first}\n".encode())

    def add(self, lines: Iterable[str]) -> None:
        """Hash more lines."""
        text = "\n".join(lines)
        if text:
            self._hashed.update(f"{text}\n".encode("utf-8", "surrogatepass"))

    @property
    def hex(self) -> str:
        """The digest so far."""
        return self._hashed.hexdigest()


def canonical(document: dict[str, Any]) -> str:
    """A JSON document in one line that depends on its content alone."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def joined(brokers: Sequence[int]) -> str:
    """Brokers as a line has them."""
    return ",".join(map(str, brokers))
