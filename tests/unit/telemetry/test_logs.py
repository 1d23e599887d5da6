from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
import structlog

from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry import logs
from bellwether.telemetry.logs import AGAIN_SECONDS, LogDedup, _on_thread, _on_uncaught, configure


@pytest.fixture(autouse=True)
def nothing_bound() -> None:
    """What another test has bound in this thread is none of these tests' matter."""
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_secrets_are_hidden_by_key_name_at_any_depth() -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    structlog.get_logger("x").warning(
        "connecting",
        password="hunter2",
        config={"sasl.password": "hunter2", "nested": [{"bearer_token": "hunter2"}]},
        secret_name="kafka-user",
    )
    (event,) = lines(stream)
    assert "hunter2" not in stream.getvalue()
    assert event["secret_name"] == "kafka-user"
    assert event["event"] == "connecting"


def test_the_libraries_logs_take_the_same_road() -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    logging.getLogger("kopf").warning("read %s", "so", extra={"token": "hunter2"})
    (event,) = lines(stream)
    assert (event["event"], event["level"], event["logger"]) == ("read so", "warning", "kopf")
    assert "hunter2" not in stream.getvalue()


def test_what_is_below_the_level_is_left_out() -> None:
    stream = io.StringIO()
    configure("console", "warning", stream)
    structlog.get_logger("x").info("chatter")
    assert stream.getvalue() == ""


def fail() -> None:
    raise ValueError("a defect")


def test_a_line_has_its_time_level_logger_and_event() -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    structlog.get_logger("bellwether.x").info("leaders_moved", reordered=4)
    (event,) = lines(stream)
    assert set(event) == {"time", "level", "logger", "event", "reordered"}
    assert (event["level"], event["logger"], event["event"]) == ("info", "bellwether.x", "leaders_moved")
    assert str(event["time"]).endswith("Z")


def test_bound_context_is_in_every_line_including_libraries() -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    with structlog.contextvars.bound_contextvars(policy="default/main", epoch=7, broker=2):
        structlog.get_logger("x").warning("ours")
        logging.getLogger("kafka.client").warning("theirs")
    assert [(e["policy"], e["epoch"], e["broker"]) for e in lines(stream)] == [("default/main", 7, 2)] * 2


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_traceback_is_one_field_of_one_line(whose: str) -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    try:
        fail()
    except ValueError:
        if whose == "ours":
            structlog.get_logger("x").exception("the turn failed")
        else:
            logging.getLogger("kopf").exception("the turn failed")
    (event,) = lines(stream)
    assert event["event"] == "the turn failed"
    assert "ValueError: a defect" in str(event["exception"])
    assert "in fail" in str(event["exception"])


def test_an_uncaught_error_is_one_line() -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    error = ValueError("a defect")
    _on_uncaught(ValueError, error, None)
    _on_thread(threading.ExceptHookArgs((ValueError, error, None, threading.current_thread())))
    first, second = lines(stream)
    assert (first["level"], first["event"]) == ("critical", "uncaught_exception")
    assert (first["where"], second["where"]) == ("process", "thread MainThread")
    assert "ValueError: a defect" in str(second["exception"])


def test_an_interrupt_is_no_defect(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    configure("json", stream=stream)
    _on_uncaught(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert stream.getvalue() == ""
    assert "KeyboardInterrupt" in capsys.readouterr().err


def test_foreign_exception_hooks_are_kept() -> None:
    before = sys.excepthook, threading.excepthook
    configure("json", stream=io.StringIO())
    sys.excepthook = before[0]
    assert threading.excepthook is before[1], "pytest has one of its own"


def test_warnings_take_the_same_road() -> None:
    stream = io.StringIO()
    logging.captureWarnings(False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure("json", stream=stream)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    (event,) = lines(stream)
    assert event["logger"] == "py.warnings"
    assert "old" in str(event["event"])


@pytest.fixture
def stream(clock: ManualClock) -> Iterator[io.StringIO]:
    made = io.StringIO()
    logs.configure("json", stream=made)
    (handler,) = logging.getLogger().handlers
    handler.filters.clear()
    handler.addFilter(LogDedup(monotonic=clock.monotonic))
    yield made
    logs.configure("console", "warning")


def noted(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_repeated_warning_is_logged_again_later_with_its_count(stream: io.StringIO, clock: ManualClock) -> None:
    for _ in range(int(AGAIN_SECONDS)):
        structlog.get_logger("x").warning("reconcile_failed", why="no answer")
        clock.advance(1)
    assert len(noted(stream)) == 1
    structlog.get_logger("x").warning("reconcile_failed", why="no answer")
    first, again = noted(stream)
    assert "repeated" not in first
    assert again["repeated"] == AGAIN_SECONDS - 1


@pytest.mark.parametrize("change", [{"why": "refused"}, {"broker": 2}])
def test_a_changed_warning_is_logged_at_once(stream: io.StringIO, change: dict[str, object]) -> None:
    structlog.get_logger("x").warning("reconcile_failed", why="no answer", broker=1)
    structlog.get_logger("x").warning("reconcile_failed", **{"why": "no answer", "broker": 1, **change})
    assert len(noted(stream)) == 2


def test_warnings_of_two_policies_are_logged_apart(stream: io.StringIO) -> None:
    for policy in ("a", "b"):
        with structlog.contextvars.bound_contextvars(policy=policy):
            structlog.get_logger("x").warning("reconcile_failed")
    assert [line["policy"] for line in noted(stream)] == ["a", "b"]


def test_informational_events_are_always_logged(stream: io.StringIO) -> None:
    for _ in range(3):
        structlog.get_logger("x").info("leaders_moved", reordered=4)
    assert len(noted(stream)) == 3


def test_numbers_in_lines_of_other_libraries_are_ignored(stream: io.StringIO, clock: ManualClock) -> None:
    for port in range(50000, 50010):
        logging.getLogger("kopf").warning("connection from port %d at 0x%x failed", port, port * 7)
    assert len(noted(stream)) == 1
    logging.getLogger("kopf").warning("something else")
    assert len(noted(stream)) == 2
    clock.advance(AGAIN_SECONDS)
    logging.getLogger("kopf").warning("connection from port %d at 0x%x failed", 1, 2)
    assert noted(stream)[-1]["repeated"] == 9


def test_troubles_without_end_take_no_memory_without_end(stream: io.StringIO) -> None:
    assert stream.getvalue() == ""
    (repeats,) = [f for h in logging.getLogger().handlers for f in h.filters if isinstance(f, LogDedup)]
    for n in range(5000):
        structlog.get_logger("x").warning("reconcile_failed", why=str(n))
    assert len(repeats._told) <= 2000
    assert len(noted(stream)) == 5000
