"""Random problems of load-aware placement, with all that can be odd about them, from a seed."""

from __future__ import annotations

import random

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective, Statistic
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, PartitionInput, Problem
from testkit.loads.small_planner import problem, slot

RACKS = ("a", "b", "c", None)


def posed(
    seed: int, *, partitions: int = 200, brokers: int = 9
) -> tuple[Problem, dict[PartitionKey, tuple[float, float | None]]]:
    """A problem and its loads.

    Closed brokers, brokers of unequal size; partitions held, out of sync, without leader, led by a closed broker or by
    another than their first replica, without load, measured without consumers; loads with a heavy tail.
    """
    dice = random.Random(seed)
    ids = sorted(dice.sample(range(1, 60), brokers))
    slots = [
        BrokerInput(
            b,
            dice.choice(RACKS),
            dice.choice((100, 100, 100, 200)),
            (well := dice.random() < 0.85),
            "" if well else "Down",
        )
        for b in ids
    ]
    if not any(b.open for b in slots):
        slots[0] = BrokerInput(slots[0].id)
    found: list[PartitionInput] = []
    rates: dict[PartitionKey, tuple[float, float | None]] = {}
    for index in range(partitions):
        replicas = dice.sample(ids, dice.choice((1, 2, 3, 3, 3)))
        isr = [b for b in replicas if dice.random() < 0.95]
        leader = NO_BROKER if dice.random() < 0.03 or not isr else dice.choice((isr[0], isr[0], dice.choice(isr)))
        held = dice.choice(("Reassigning", "Displaced", "Internal")) if dice.random() < 0.05 else ""
        one = slot(index // 7, replicas, topic=f"topic-{index % 7}", isr=isr, leader=leader, held=held)
        found.append(one)
        if dice.random() < 0.95:
            rate = dice.paretovariate(1.2) * 1000
            rates[one.key] = (rate, dice.choice((None, 0.0, rate * dice.random() * 3)))
    objective = Objective(
        statistic=dice.choice(list(Statistic)),
        consumption=dice.choice((True, False)),
        preferred_racks=tuple(dice.choice(((), (), ("a", "b")))),
    )
    return problem(*found, brokers=slots, objective=objective), rates
