"""One plan on a Spark session: run in a process of its own, so that only what the job holds is measured."""

from __future__ import annotations

from bellwether_load.engines.spark import SparkEngine
from bellwether_load.jobs.making import plan_of
from bellwether_load.jobs.plan import SETTINGS
from bellwether_load.jobs.plan_writing import write_plan
from bellwether_load.jobs.sessions import session
from sparkplans.costs import Cost, cost_of_family
from sparkplans.instances import Case

HEAP = {False: "2g", True: "4g"}
"""Of the session, without hours and with them."""


def plan_on_spark(folder: str, case: Case, small: str) -> tuple[str, Cost]:
    """Digest and cost of a plan. ``small``: what Spark compiles with before it is measured."""
    made = []
    with session("bench", master="local[2]", memory=HEAP[case.hours > 0], settings=SETTINGS) as spark:
        engine = SparkEngine(spark)
        plan_of(engine, folder, small, small)

        def plan() -> None:
            made.append(plan_of(engine, folder, case.name, case.name))
            write_plan(folder, made[0])

        cost = cost_of_family(plan)
    return made[0].plan.digest, cost
