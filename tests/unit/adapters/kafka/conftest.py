"""Time on the wire as a test wants it: deadlines that are over at once, without waiting for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bellwether.adapters.kafka.connection import transport


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The clock of all deadlines jumps ahead by that many seconds; sockets go on as fast as they do."""
    ahead, monotonic = [0.0], transport._monotonic
    monkeypatch.setattr(transport, "_monotonic", lambda: monotonic() + ahead[0])

    def leap(seconds: float) -> None:
        ahead[0] += seconds

    return leap
