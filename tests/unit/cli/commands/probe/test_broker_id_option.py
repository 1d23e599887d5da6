"""A sidecar's broker: a number, or the name of the pod that ends with it."""

from __future__ import annotations

import click
import pytest

from bellwether.cli.commands.probe.broker_id_option import BrokerId


@pytest.mark.parametrize(
    ("given", "broker"),
    [
        ("0", 0),
        ("17", 17),
        ("kafka-3", 3),
        ("my-cluster-brokers-12", 12),
        ("my-cluster-dual-role-0", 0),
        ("2147483647", 2147483647),
    ],
)
def test_a_number_and_a_pods_name_tell_the_broker(given: str, broker: int) -> None:
    assert BrokerId().convert(given, None, None) == broker


@pytest.mark.parametrize(
    "given", ["", "-1", "kafka", "kafka-", "kafka-3a", "kafka-03", "3.5", "2147483648", "kafka-9999999999", "\u0663"]
)
def test_whatever_ends_with_no_id_is_refused_by_name(given: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a broker id nor a pod name"):
        BrokerId().convert(given, None, None)
