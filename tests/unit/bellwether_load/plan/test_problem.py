from __future__ import annotations

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.plan.problem import PartitionInput, validate_partition
from testkit.loads.small_planner import problem, slot


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (slot(0, (1, 9)), "brokers that the problem does not list"),
        (slot(0, (1, 1)), "names a replica twice"),
        (slot(0, (1, 2), isr=(3,)), "ISR member that is not a replica"),
        (slot(0, (1, 2), leader=3), "is led by 3"),
        (slot(-1), "not a partition index"),
        (slot(0)._replace(replicas=(), isr=()), "no replicas"),
        (slot(0)._replace(topic_id=""), "no topic id"),
    ],
)
def test_a_partition_that_makes_no_sense_is_named(wrong: PartitionInput, said: str) -> None:
    with pytest.raises(InvalidDocument, match=said) as caught:
        validate_partition(wrong, (1, 2, 3))
    assert str(caught.value).startswith(f"orders-{wrong.partition} ")


def test_partitions_that_make_sense_pass() -> None:
    for fine in problem(slot(0), slot(1, (3, 1), isr=(), leader=-1), slot(2, (2,), held="Displaced")).partitions:
        validate_partition(fine, (1, 2, 3))
    assert slot(4).key == PartitionKey("id-of-orders", 4)
