from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.balancing.blocks import Floats, Int32s
from bellwether_load.losses.loss_input import LossInput
from bellwether_load.losses.loss_loads import busiest, losses, worst
from bellwether_load.losses.order_descent import HourLimits
from bellwether_load.losses.plan_orders import PlannedOrders, planned_orders
from testkit.loads.loss_cases import loss_case


def planned(case: LossInput, limit: Fraction | None, most: int | None = None) -> PlannedOrders:
    return planned_orders(case, case.leader, range(case.brokers), ["a", "b", "c"] * (case.brokers // 3), limit, most)


@pytest.mark.parametrize("seed", range(4))
def test_leaders_change_where_orders_alone_leave_losses_high(seed: int) -> None:
    case = loss_case(seed, 12, 400, heavy=1.4)
    limit = busiest(case, case.leader)
    alone, found = planned(case, None), planned(case, limit)
    assert alone.losses is not None
    assert found.losses is not None
    assert (alone.leader == case.leader).all()
    assert busiest(case, found.leader) <= limit
    for before, after in zip(alone.losses.kinds, found.losses.kinds, strict=True):
        assert before.gap is not None
        assert after.gap is not None
        assert after.gap < max(before.gap / 2, 0.02)


def test_no_more_leaders_change_than_are_allowed() -> None:
    case = loss_case(0, 12, 400, heavy=1.4)
    limit = busiest(case, case.leader)
    free, capped = planned(case, limit), planned(case, limit, 5)
    assert (free.leader != case.leader).sum() > 5
    assert 0 < (capped.leader != case.leader).sum() <= 5


def test_no_broker_exceeds_its_limit_in_an_hour() -> None:
    case = loss_case(0, 12, 400, heavy=1.4)
    # Half of the partitions have all of their load in one hour, the others in another.
    loads = np.stack([case.loads * (np.arange(400) % 2 == hour) for hour in (0, 1)], axis=1).astype(np.float32)

    def carried(leader: Int32s) -> Floats:
        led = [np.bincount(leader, of, case.brokers) for of in loads.T]
        return case.base[:, None] + np.stack(led, axis=1)

    most = carried(case.leader) * 1.05
    found = [
        planned_orders(case, case.leader, range(12), ["a", "b", "c"] * 4, busiest(case, case.leader), None, hours)
        for hours in (None, lambda: HourLimits(loads, np.arange(400), carried(case.leader), most))
    ]
    above = [bool((carried(of.leader) > most * (1 + 1e-9)).any()) for of in found]
    assert above == [True, False]
    assert (found[1].leader != case.leader).any()


def test_what_is_said_of_losses_is_what_the_orders_give() -> None:
    case = loss_case(1, 12, 400, heavy=1.4)
    found = planned(case, busiest(case, case.leader))
    assert found.losses is not None
    order = np.where((found.second < case.brokers)[:, None], case.ordered(found.second, found.leader), case.takers)
    for loss in found.losses.kinds:
        top = worst(losses(case, loss.kind, found.leader, order))
        assert top is not None
        assert loss.after.load == float(top.load)
