"""From what a problem says to numbers: loads, who may lead, sums a broker."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.core.settings.objective import Objective
from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.balancing.blocks import Block
from bellwether_load.plan.partition_rows import Rows, read_rows
from bellwether_load.plan.problem import BrokerInput, PartitionInput
from testkit.loads.small_planner import load_table, loads, partition_table, problem, slot


def of(*slots: PartitionInput, rate: float = 5.0, closed: int = 0, racks: str = "ab-", **objective: Any) -> Rows:
    """With 5 bytes/s in and 2 out of each partition, but of those that are held for being Unknown."""
    brokers = [BrokerInput(b, rack, open=b != closed) for b, rack in zip((1, 2, 3), racks, strict=True)]
    posed = problem(*slots, brokers=brokers, objective=Objective(**objective))
    known = [one for one in posed.partitions if one.held != "Unknown"]
    rates = loads(problem(*known, brokers=brokers), *[rate] * len(known), consume=2.0)
    return read_rows(posed.header, partition_table(posed.partitions), load_table(posed, rates))


def eligible(found: Rows) -> list[list[int]]:
    return [found.ids[line[line < found.brokers]].tolist() for line in found.eligible]


@pytest.mark.parametrize(("consumption", "load"), [(True, 100 * (5 * 2 + 2)), (False, 100 * 5 * 2)])
def test_leading_costs_what_goes_out_to_followers_and_consumers(consumption: bool, load: int) -> None:
    found = of(slot(0, (1, 2, 3)), consumption=consumption)
    assert (found.load.tolist(), found.base.tolist()) == ([load], [500, 500, 500])


def test_only_the_first_preferred_rack_that_has_a_candidate_counts() -> None:
    slots = slot(0), slot(1, (1, 3)), slot(2, (3,)), slot(3, isr=(1, 3))
    assert eligible(of(*slots, preferred_racks=("b", "a"), racks="abc")) == [[2], [1], [3], [1]]


@pytest.mark.parametrize("why", [{"held": "Reassigning"}, {"held": "Unknown"}, {"isr": ()}])
def test_a_partition_that_is_held_or_unknown_or_has_no_candidate_stays(why: dict[str, Any]) -> None:
    found = of(slot(0, (2, 1), **why))
    assert (eligible(found), found.stays.tolist(), found.sole.tolist(), found.free.tolist()) == (
        [[2]], [True], [True], [False],
    )  # fmt: skip


def test_one_whose_leader_may_not_lead_must_move() -> None:
    found = of(slot(0), slot(1, leader=-1), slot(2, held="Displaced"), closed=1)
    assert (found.home.tolist(), found.forced.tolist()) == ([3, 3, 3], [True, True, False])
    assert (eligible(found), found.leader.tolist()) == ([[2, 3], [2, 3], []], [0, 3, 0])


def test_only_partitions_with_a_choice_are_in_the_block_and_the_others_in_the_sums() -> None:
    found = of(slot(0), slot(1, (2, 1), held="Internal"), slot(2, (3, 1), isr=(3,)), slot(3, (2, 1)))
    block = Block.of(found)
    assert (block.ids.tolist(), block.home.tolist(), block.loads.tolist()) == ([0, 3], [0, 1], [1200, 700])
    assert (found.led(~found.free).tolist(), found.led().tolist()) == ([0, 700, 700], [1200, 1400, 700])


@pytest.mark.parametrize(("wrong", "said"), [(slot(0, (1, 9)), "not all"), (slot(0, (1, 1)), "each once")])
def test_a_partition_that_makes_no_sense_is_named(wrong: PartitionInput, said: str) -> None:
    with pytest.raises(InvalidDocument, match=rf"^orders-0 has the replicas .*{said}"):
        of(wrong)


def test_loads_that_add_up_to_more_than_is_exact_are_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"they add up to .* more than 2\*\*53"):
        of(*(slot(n) for n in range(8)), rate=2.0**45)
