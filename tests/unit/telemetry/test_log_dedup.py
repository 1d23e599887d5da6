"""A lasting problem is logged once in a while; what has changed, at once."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from bellwether.telemetry.log_dedup import AGAIN_SECONDS, LogDedup

from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry import logs


@pytest.fixture
def stream(clock: ManualClock) -> Iterator[io.StringIO]:
    made = io.StringIO()
    logs.configure("json", stream=made)
    (handler,) = logging.getLogger().handlers
    handler.filters.clear()
    handler.addFilter(LogDedup(monotonic=clock.monotonic))
    yield made
    logs.configure("console", "warning")


def told(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_repeated_warning_is_logged_again_later_with_its_count(stream: io.StringIO, clock: ManualClock) -> None:
    for _ in range(int(AGAIN_SECONDS)):
        structlog.get_logger("x").warning("reconcile_failed", why="no answer")
        clock.advance(1)
    assert len(told(stream)) == 1
    structlog.get_logger("x").warning("reconcile_failed", why="no answer")
    first, again = told(stream)
    assert "repeated" not in first
    assert again["repeated"] == AGAIN_SECONDS - 1


@pytest.mark.parametrize("change", [{"why": "refused"}, {"broker": 2}])
def test_a_changed_warning_is_logged_at_once(stream: io.StringIO, change: dict[str, object]) -> None:
    structlog.get_logger("x").warning("reconcile_failed", why="no answer", broker=1)
    structlog.get_logger("x").warning("reconcile_failed", **{"why": "no answer", "broker": 1, **change})
    assert len(told(stream)) == 2


def test_warnings_of_two_policies_are_logged_apart(stream: io.StringIO) -> None:
    for policy in ("a", "b"):
        with structlog.contextvars.bound_contextvars(policy=policy):
            structlog.get_logger("x").warning("reconcile_failed")
    assert [line["policy"] for line in told(stream)] == ["a", "b"]


def test_informational_events_are_always_logged(stream: io.StringIO) -> None:
    for _ in range(3):
        structlog.get_logger("x").info("leaders_moved", reordered=4)
    assert len(told(stream)) == 3


def test_numbers_in_lines_of_other_libraries_are_ignored(stream: io.StringIO, clock: ManualClock) -> None:
    for port in range(50000, 50010):
        logging.getLogger("kopf").warning("connection from port %d at 0x%x failed", port, port * 7)
    assert len(told(stream)) == 1
    logging.getLogger("kopf").warning("something else")
    assert len(told(stream)) == 2
    clock.advance(AGAIN_SECONDS)
    logging.getLogger("kopf").warning("connection from port %d at 0x%x failed", 1, 2)
    assert told(stream)[-1]["repeated"] == 9


def test_troubles_without_end_take_no_memory_without_end(stream: io.StringIO) -> None:
    assert stream.getvalue() == ""
    (repeats,) = [f for h in logging.getLogger().handlers for f in h.filters if isinstance(f, LogDedup)]
    for n in range(5000):
        structlog.get_logger("x").warning("reconcile_failed", why=str(n))
    assert len(repeats._told) <= 2000
    assert len(told(stream)) == 5000
