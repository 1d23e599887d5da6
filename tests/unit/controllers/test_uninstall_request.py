"""The annotation that asks for Bellwether's removal: what is understood, and that it ends by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellwether.controllers.policy_deletion import (
    STAYS_AWAY,
    UNINSTALL,
    UninstallRequest,
    requested_uninstall,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def body(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {UNINSTALL: value} if value is not None else {}}}


@pytest.mark.parametrize("restore", [True, False])
def test_what_is_written_is_read_back(restore: bool) -> None:
    asked = UninstallRequest(restore, NOW + timedelta(seconds=60))
    assert requested_uninstall(body(str(asked)), NOW) == asked


def test_the_words_say_what_is_asked_for() -> None:
    assert str(UninstallRequest(True, NOW)) == "Restore until 2026-01-01T00:00:00Z"


def test_it_counts_for_a_while_after_its_end_only() -> None:
    asked = UninstallRequest(True, NOW)
    assert requested_uninstall(body(str(asked)), NOW + STAYS_AWAY - timedelta(seconds=1)) == asked
    assert requested_uninstall(body(str(asked)), NOW + STAYS_AWAY) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "true",
        "Restore",
        "Restore until tomorrow",
        "Restore until 2026-01-01T00:01:00",
        "Remove until 2026-01-01T00:01:00Z",
    ],
)
def test_any_other_annotation_value_requests_nothing(value: str | None) -> None:
    assert requested_uninstall(body(value), NOW) is None


def test_an_object_without_annotations_asks_for_nothing() -> None:
    assert requested_uninstall({"metadata": {}}, NOW) is None
