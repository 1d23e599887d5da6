"""From what a problem says to numbers: loads, eligibility, sums a broker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.balancing.choices import Choices, Refused, choices
from bellwether_load.plan.problem import BrokerInput, ProblemHeader

NOBODY = 3  # one past the last of three brokers
OBJECTIVE = Objective()


def row(replicas: Sequence[int] = (10, 20, 30), **said: Any) -> dict[str, Any]:
    """A partition in sync, led by its first replica, with 5 bytes/s in and 2 out, by default."""
    found = {
        "topic": "orders", "topic_id": "id", "partition": 0, "replicas": list(replicas), "isr": list(replicas),
        "leader": replicas[0], "held": "", "produce": 5.0, "consume": 2.0,
    }  # fmt: skip
    return {**found, **said}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    schema = pa.schema(
        [
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("replicas", pa.list_(pa.int32())), ("isr", pa.list_(pa.int32())), ("leader", pa.int32()),
            ("held", pa.string()), ("produce", pa.float64()), ("consume", pa.float64()),
        ]
    )  # fmt: skip
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def of(*rows: dict[str, Any], objective: Objective = OBJECTIVE, closed: int = 0, racks: str = "ab-") -> Choices:
    brokers = tuple(BrokerInput(b, rack, open=b != closed) for b, rack in zip((10, 20, 30), racks, strict=True))
    header = ProblemHeader("cluster", "ns/policy", datetime(2026, 1, 1, tzinfo=UTC), objective, brokers)
    return choices(batch(*rows), header)


def eligible(found: Choices) -> list[list[int]]:
    return [[int(b) for b in line if b < found.brokers] for line in found.eligible]


def test_leading_costs_what_goes_out_to_followers_and_consumers():
    found = of(row())
    assert found.loads.tolist() == [100 * (5 * 2 + 2)]
    assert found.follows.tolist() == [500]


def test_consumers_count_unless_they_are_not_asked_for():
    assert of(row(), objective=Objective(consumption=False)).loads.tolist() == [100 * 5 * 2]


def test_rates_are_rounded_half_to_even():
    assert of(row(produce=2.5, consume=0.0), row(produce=3.5, consume=0.0)).follows.tolist() == [200, 400]


def test_a_partition_without_consumers_measured_has_its_produce_alone():
    found = of(row(consume=None), row(partition=1, consume=0.0))
    assert (found.loads.tolist(), found.consumed.tolist()) == ([1000, 1000], [False, True])


@pytest.mark.parametrize("rate", [math.nan, math.inf, -1.0, 2.0**46])
def test_what_is_no_rate_is_refused_with_partition_and_column(rate: float):
    with pytest.raises(Refused, match="orders-4: its consume rate is"):
        of(row(), row(partition=4, consume=rate))


def test_a_broker_that_is_not_listed_is_refused():
    with pytest.raises(Refused, match="name broker 77, which the problem does not list"):
        of(row((10, 77)))


def test_the_eligible_are_open_and_in_sync():
    assert eligible(of(row(), row(isr=[10, 20]), closed=20)) == [[0, 2], [0]]


def test_only_the_first_preferred_rack_that_has_a_candidate_counts():
    wanted = Objective(preferred_racks=("b", "a"))
    found = of(row(), row((10, 30)), row((30,)), row(isr=[10, 30]), objective=wanted, racks="abc")
    assert eligible(found) == [[1], [0], [2], [0]]


@pytest.mark.parametrize("why", [{"held": "Reassigning"}, {"produce": None, "consume": None}, {"isr": []}])
def test_a_partition_that_is_held_or_unknown_or_has_no_candidate_stays(why: dict[str, Any]):
    found = of(row((20, 10), **why))
    assert eligible(found) == [[1]]
    assert (bool(found.stays[0]), bool(found.fixed[0]), bool(found.free[0])) == (True, True, False)


def test_one_that_stays_and_has_no_leader_is_left_out():
    found = of(row(leader=-1, held="Displaced"))
    assert (bool(found.out[0]), bool(found.free[0]), bool(found.fixed[0])) == (True, False, False)


def test_one_whose_leader_may_not_lead_must_move():
    found = of(row(), row(leader=-1), closed=10)
    assert found.home.tolist() == [3, 3]
    assert found.free.tolist() == [True, True]
    assert found.leader.tolist() == [0, NOBODY]


def test_everything_is_summed_by_the_broker_where_it_belongs():
    found = of(row(), row((20, 10), held="Internal"), row((30,), produce=None, consume=None))
    assert found.base.tolist() == [1000, 1000, 500]
    assert found.led(found.fixed).tolist() == [0, 700, 0]
    assert found.led().tolist() == [1200, 700, 0]


def test_only_partitions_with_a_choice_are_in_the_block():
    found = of(row(), row((20, 10), held="Internal"), row((30, 10), isr=[30]), row((20, 10))).block
    assert (found.ids.tolist(), found.home.tolist(), found.loads.tolist()) == ([0, 3], [0, 1], [1200, 700])


def test_loads_that_add_up_to_more_than_is_exact_are_refused():
    with pytest.raises(Refused, match=r"more than the 9\.01e\+13 up to which sums are exact: .* orders-3 has the most"):
        of(*(row(partition=n, produce=2.0 ** (44 + n / 4)) for n in range(4)))
