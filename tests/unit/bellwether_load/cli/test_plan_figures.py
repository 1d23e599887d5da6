"""The summary of a plan in the terminal, from the figures of a policy's status."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from bellwether.api.v1alpha1.status.rebalance_status import (
    BrokerHour,
    Forecast,
    PlanFigures,
    PlanWithoutCap,
    StatisticPlan,
)
from bellwether_load.cli.plan_figures import show_figures
from bellwether_load.controller.reported_figures import plan_figures
from testkit.loads.plan_pages import small_plan
from testkit.messages import assert_wording

FIGURES = plan_figures(small_plan()[0])
WEEK = Forecast(
    hours=168,
    before=BrokerHour(broker=3, hour="Tuesday 14:00 UTC", load=70_000_000),
    after=BrokerHour(broker=1, hour="Tuesday 15:00 UTC", load=50_000_000),
)


def changed(**more: Any) -> PlanFigures:
    return FIGURES.model_copy(update=more)


def shown(figures: PlanFigures) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    show_figures(figures, "abc", console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_what_decides_the_bound_and_what_the_cap_costs_come_before_the_busiest_hour() -> None:
    reason = "Broker 1 cannot go lower: [red]2 % is following."
    rich = changed(
        bound_reason=reason,
        without_cap=PlanWithoutCap(load_after=30_000_000, bound=20_000_000, moves=12),
        forecast=WEEK,
    )
    assert shown(rich)[len(shown(FIGURES)) :] == [
        reason,
        "claimed without maxMoves 30 MB/s with 12 moves; best possible 20 MB/s",
        "busiest hour     70 MB/s before (broker 3, Tuesday 14:00 UTC), 50 MB/s after (broker 1, Tuesday 15:00 UTC)",
    ]


def test_how_good_a_plan_is_by_hour_and_what_that_costs_is_said() -> None:
    proved = {"bound": 49_000_000, "gap_percent": "10.204", "statistic_plan": StatisticPlan(load=60_000_000, moves=9)}
    *_, bound, other = shown(changed(forecast=WEEK.model_copy(update=proved)))
    assert_wording(bound, other)


def test_a_plan_without_forecast_says_nothing_of_hours() -> None:
    assert "busiest hour" not in " ".join(shown(FIGURES))
