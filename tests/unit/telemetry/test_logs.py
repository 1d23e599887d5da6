from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings

import pytest
import structlog

from bellwether.telemetry.logs import _on_thread, _on_uncaught, configure


@pytest.fixture(autouse=True)
def nothing_bound() -> None:
    """What another test has bound in this thread is none of these tests' matter."""
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_secrets_are_hidden_by_the_name_of_their_key_at_any_depth() -> None:
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
    logging.getLogger("kopf").warning("told %s", "so", extra={"token": "hunter2"})
    (event,) = lines(stream)
    assert (event["event"], event["level"], event["logger"]) == ("told so", "warning", "kopf")
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
