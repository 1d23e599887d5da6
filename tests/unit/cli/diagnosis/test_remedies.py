"""Remedies by reason, of brokers that a person demoted, and commands as a person can type them."""

from __future__ import annotations

import pytest

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.cli.diagnosis.remedies import OVERRIDES_NAMED, override_remedy, remedy, runbook, typed
from bellwether.core.reasons import Reason
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording


def health(broker: int = 3, state: str = "Healthy", reason: str = "SignalsPassing", **override: str) -> BrokerHealth:
    wanted = {"state": "Demoted", "reason": "kernel update, OPS-412", **override}
    verdict = {"state": state, "reason": reason, "message": "so it is", "since": "2026-01-01T00:00:00Z"}
    return BrokerHealth.read({**api_objects.health(broker, override=wanted), "status": {"verdict": verdict}})


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(health(by="root", until="2026-01-01T08:00:00Z"), id="healthy"),
        pytest.param(health(state="Sick", reason="StorageSlow"), id="sick"),
        pytest.param(health(state="Unknown", reason="NoEvidence"), id="unknown"),
        pytest.param(BrokerHealth.read(api_objects.health(3)), id="no override"),
    ],
)
def test_one_broker_is_shown_with_what_its_release_would_do(found: BrokerHealth):
    assert_wording(override_remedy([found]))


def test_of_many_brokers_some_are_named():
    text = override_remedy([health(broker) for broker in range(OVERRIDES_NAMED + 2)])
    assert text.count("lets it lead") == OVERRIDES_NAMED
    assert_wording(text)


@pytest.mark.parametrize(
    ("text", "broker", "command"),
    [
        ("bellwether explain BROKER --policy NAME -n NAMESPACE", "3", "bellwether explain 3 --policy orders -n kafka"),
        ("bellwether explain BROKER --policy NAME", "", "bellwether explain BROKER --policy orders -n kafka"),
        ("kubectl annotate lp NAME a=b", "3", "kubectl annotate lp orders -n kafka a=b"),
        ("the ConfigMaps bellwether-undo-NAME", "3", "the ConfigMaps bellwether-undo-NAME"),
    ],
)
def test_the_command_of_a_remedy_can_be_typed_as_it_is(text: str, broker: str, command: str):
    assert typed(text, "kafka", "orders", broker) == command


def test_every_reason_has_a_remedy_and_a_section_of_the_runbook():
    assert [reason for reason in Reason if not remedy(reason) or "#" not in runbook(reason)] == []
