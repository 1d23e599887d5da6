"""The summary of a plan in the terminal, from the figures of a policy's status."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from bellwether.cli.rebalance.plan_figures import show_figures
from bellwether.core.rebalance.forecast import BrokerHour, Forecast
from bellwether.core.rebalance.hourly_proof import StatisticPlan
from bellwether.core.rebalance.lifecycle import HourlyFigures, RebalanceFigures, UncappedFigures
from testkit.loads.plan_pages import small_plan

FIGURES = RebalanceFigures.of(small_plan()[0])
WEEK = Forecast(168, BrokerHour(3, 38, 7e7), BrokerHour(1, 39, 5e7))


def shown(figures: RebalanceFigures) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    show_figures(figures, "abc", console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_what_decides_the_bound_and_what_the_cap_costs_come_before_the_busiest_hour() -> None:
    reason = "Broker 1 cannot go lower: [red]2 % is following."
    rich = replace(FIGURES, bound_reason=reason, uncapped=UncappedFigures(3e7, 2e7, 12), forecast=WEEK)
    assert shown(rich)[len(shown(FIGURES)) :] == [
        reason,
        "without maxMoves 30 MB/s with 12 moves were found; best possible 20 MB/s",
        "busiest hour     70 MB/s before (broker 3, Tuesday 14:00 UTC), 50 MB/s after (broker 1, Tuesday 15:00 UTC)",
    ]


def test_hours_that_are_not_known_are_said() -> None:
    *_, last = shown(replace(FIGURES, forecast=replace(WEEK, hours=24)))
    assert last == "Only 24 of 168 hours of the week are known: in the others a broker may be busier."


def test_how_good_a_plan_is_by_hour_and_what_that_costs_is_said() -> None:
    proved = HourlyFigures(4.9e7, 5 / 4.9 / 10, StatisticPlan(6e7, 9))
    *_, bound, other = shown(replace(FIGURES, forecast=WEEK, hourly=proved))
    assert bound == "  its bound      49 MB/s; at most 10.20% above the best possible"
    assert other == "  instead of     60 MB/s with 9 moves, for the statistic alone"


def test_a_plan_without_forecast_says_nothing_of_hours() -> None:
    assert "hour" not in " ".join(shown(FIGURES))
