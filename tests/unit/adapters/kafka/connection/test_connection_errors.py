"""How a conversation that broke is counted: silence is not taken for a refused certificate or password."""

from __future__ import annotations

import pytest

from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, Stage
from bellwether.ports.kafka import ProbeAnswer


@pytest.mark.parametrize("stage", [Stage.TLS, Stage.SASL])
def test_silence_is_a_timeout_and_not_a_refusal(stage: Stage):
    assert BrokerConnectionError(stage, "a:1", "no answer in time", silent=True).outcome == "Timeout"
    assert ProbeAnswer(False, 2.0, stage, "no answer in time", counted="Timeout").result == "Timeout"


@pytest.mark.parametrize("stage", [Stage.TLS, Stage.SASL])
def test_what_was_refused_is_counted_where_it_was(stage: Stage):
    assert BrokerConnectionError(stage, "a:1", "it has expired", lasting=True).outcome == str(stage)
    assert ProbeAnswer(False, 2.0, stage, "it has expired").result == str(stage)


@pytest.mark.parametrize("stage", [Stage.CONNECT, Stage.REQUEST])
def test_elsewhere_the_stage_says_enough(stage: Stage):
    assert BrokerConnectionError(stage, "a:1", "no answer in time", silent=True).outcome == str(stage)


def test_a_right_answer_is_counted_as_such():
    assert ProbeAnswer(True, 0.1, Stage.REQUEST).result == "ok"
