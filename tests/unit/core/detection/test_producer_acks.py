"""What most producers wait for: what Kafka's remote time proves overrules the policy, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.condition import Condition
from bellwether.core.detection.context import Context
from bellwether.core.detection.producer_acks import producer_acks, producer_acks_condition
from bellwether.core.detection.verdicts import judge
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Demotion, Policy, ProducerAcks
from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.simulation.memory_world import START
from testkit.messages import assert_wording
from testkit.values.builders import cluster, partition, signal, snapshot, verdicts

RULE = PrometheusRule(name="acks", query="remote", threshold=0, shows_acks=True)
DETECTION = Detection(prometheus_rules=(RULE,))
SEEN = cluster(partition())
ALL, ONE = ProducerAcks.ALL, ProducerAcks.ONE
WAITS, NO_WAIT, SILENT = Reading.FAILING, Reading.PASSING, Reading.UNKNOWN


def measured(reading: Reading, value: float | None = None, broker: int = 2, age: float | None = 0.0) -> Signal:
    return Signal(broker, SignalType.PROMETHEUS, "acks", reading, START, age, value=value)


def context(said: Sequence[Signal], acks: ProducerAcks = ONE, detection: Detection = DETECTION) -> Context:
    policy = Policy(name="main", demotion=Demotion(producer_acks=acks), detection=detection)
    return Context(replace(snapshot(), cluster=SEEN, signals=tuple(said)), verdicts(SEEN), policy)


def fit(said: Sequence[Signal], acks: ProducerAcks = ONE) -> Condition:
    found = producer_acks_condition(context(said, acks))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("said", "acks", "used", "status", "reason"),
    [
        pytest.param([measured(WAITS, 4.0)], ONE, ALL, False, Reason.ACKS_CONTRADICTED, id="One is contradicted"),
        pytest.param(
            [measured(NO_WAIT, 0, 1), measured(WAITS, 4.0), measured(NO_WAIT, 0, 3)],
            ONE, ALL, False, Reason.ACKS_CONTRADICTED, id="by one broker of three",
        ),
        pytest.param([measured(WAITS, 4.0)], ALL, ALL, True, Reason.UP_TO_DATE, id="All is proved"),
        pytest.param([measured(NO_WAIT, 0.0)], ONE, ONE, True, Reason.UP_TO_DATE, id="One is not contradicted"),
        pytest.param([measured(NO_WAIT, 0.0)], ALL, ALL, None, Reason.NO_EVIDENCE, id="0 does not disprove All"),
        pytest.param([], ONE, ONE, None, Reason.NO_EVIDENCE, id="nothing is measured"),
        pytest.param([measured(SILENT)], ONE, ONE, None, Reason.NO_EVIDENCE, id="Prometheus has no value"),
        pytest.param([measured(WAITS, 4.0, age=61.0)], ONE, ONE, None, Reason.NO_EVIDENCE, id="the value is stale"),
        pytest.param([measured(WAITS, 4.0, age=None)], ONE, ONE, None, Reason.NO_EVIDENCE, id="of an old prober"),
        pytest.param([measured(WAITS, 4.0, broker=9)], ONE, ONE, None, Reason.NO_EVIDENCE, id="of no broker of ours"),
    ],
)  # fmt: skip
def test_remote_time_above_zero_overrules_acks_one(
    said: Sequence[Signal], acks: ProducerAcks, used: ProducerAcks, status: bool | None, reason: Reason
):
    assert producer_acks(context(said, acks)) is used
    found = fit(said, acks)
    assert (found.type, found.status, found.reason) == ("ProducerAcksFit", status, reason)


def test_the_condition_names_field_figure_and_remedy():
    text = fit([measured(WAITS, 0.5, 1), measured(WAITS, 4.0)]).message
    assert "spec.demotion.producerAcks is One" in text
    assert_wording(text)
    assert text.endswith("Set it to All")


def test_policy_without_such_rule_says_nothing_and_believes_no_value():
    plain = Detection(prometheus_rules=(replace(RULE, shows_acks=False),))
    found = context([measured(WAITS, 4.0)], detection=plain)
    assert producer_acks_condition(found) is None
    assert producer_acks(found) is ONE


def test_remote_time_judges_no_broker():
    reached = [signal(broker, Reading.PASSING, source=source) for broker in (1, 2, 3) for source in ("a", "b")]
    with_it = context([*reached, measured(WAITS, 4000.0)])
    found = judge(with_it.snapshot, with_it.policy, {})
    assert {verdict.reason for verdict in found.values()} == {Reason.SIGNALS_PASSING}


def test_remote_time_is_read_as_long_as_other_prometheus_values():
    assert DETECTION.stale_after(SignalType.PROMETHEUS, "acks") == 60
    assert DETECTION.stale_after(SignalType.PROMETHEUS, "another") is None
