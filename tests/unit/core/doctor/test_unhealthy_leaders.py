"""Unhealthy brokers that lead, and what clients lose by them."""

from __future__ import annotations

import pytest

from bellwether.core.doctor.judged_brokers import JudgedBrokers, UnhealthyBroker
from bellwether.core.doctor.unhealthy_leaders import unhealthy_leaders
from bellwether.core.reasons import Reason
from testkit.values.builders import cluster, partition


def broker(number: int, reason: str = "StorageSlow") -> UnhealthyBroker:
    return UnhealthyBroker(number, "Sick", reason, "so it is")


def test_only_brokers_that_lead_count_and_the_one_with_the_most_partitions_comes_first() -> None:
    seen = cluster(
        partition("a", index=0, leader=1),
        partition("b", index=0, leader=2, replicas=(2, 1, 3)),
        partition("b", index=1, leader=2, replicas=(2, 1, 3)),
        partition("c", index=0, leader=None),
    )
    found = unhealthy_leaders(seen, JudgedBrokers((broker(1), broker(2), broker(3))))
    assert [(leader.broker.broker, dict(leader.topics)) for leader in found] == [(2, {"b": 2}), (1, {"a": 1})]
    assert unhealthy_leaders(seen, JudgedBrokers()) == ()


@pytest.mark.parametrize(
    ("reason", "lost"),
    [
        (Reason.EXTERNALLY_UNREACHABLE, "no reads, no writes through the external listener: so it is"),
        (Reason.STORAGE_SLOW, "writes fail or are slow: so it is"),
        (Reason.READS_SLOW, "reads fail or are slow: so it is"),
        ("AReasonOfALaterVersion", "requests fail or are slow: so it is"),
    ],
)
def test_what_clients_lose_follows_from_the_reason(reason: str, lost: str) -> None:
    assert broker(1, reason).clients == lost
