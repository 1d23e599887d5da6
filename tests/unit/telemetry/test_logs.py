from __future__ import annotations

import io
import json
import logging

import structlog

from bellwether.telemetry.logs import configure


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
