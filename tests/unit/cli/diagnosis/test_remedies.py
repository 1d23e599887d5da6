"""Remedies by reason, and their commands as a person can type them."""

from __future__ import annotations

import pytest

from bellwether.cli.diagnosis.remedies import remedy, runbook, typed
from bellwether.core.reasons import Reason


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
