"""A rebalance in a policy's status: whole numbers, the same bytes once it was read back, and room for its worst day."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.core.model.undo_record import SkippedPartition
from bellwether.core.reasons import Reason
from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.rebalance import RunState
from bellwether_load.controller.lifecycle import RebalanceRun, on_planned
from bellwether_load.controller.reported_figures import plan_figures
from bellwether_load.controller.run_status import run_of, status_of
from bellwether_load.plan.certificate import HourlyProof, StatisticPlan
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.rebalance_plan import RebalancePlan
from testkit.loads.plan_pages import small_plan
from testkit.values.rebalances import plan_figures as figures

TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=0)
)
REASONS = st.sampled_from(["ChangedSincePlan", "Reassigning", "SkippedInWave"])
WEEK = Forecast(168, BrokerHour(1, 1, 20.4), BrokerHour(1, 2, 10.0))


@st.composite
def runs(draw: st.DrawFn) -> RebalanceRun:
    left = draw(st.dictionaries(REASONS, st.integers(1, 10**6)))
    return RebalanceRun(
        state=draw(st.sampled_from(RunState)),
        reason=draw(st.sampled_from(Reason)),
        message=draw(st.text(max_size=100)),
        name=draw(st.text(max_size=60)),
        request=draw(st.text(max_size=200)),
        started_at=draw(st.none() | TIMES),
        next_at=draw(st.none() | TIMES),
        input_digest=draw(st.sampled_from(["", "ab" * 32])),
        digest=draw(st.sampled_from(["", "0123456789abcdef"])),
        made_at=draw(st.none() | TIMES),
        figures=draw(st.sampled_from([None, figures(), plan_figures(by_hours(8.0))])),
        taken_up=sum(left.values()) + draw(st.integers(0, 10**6)),
        left=left,
        sample=tuple(
            draw(st.lists(st.builds(SkippedPartition, st.just("orders"), st.integers(0, 99), REASONS), max_size=20))
        ),
    )


def by_hours(bound: float) -> RebalancePlan:
    """A plan whose busiest hour is proved to be no lower than the bound."""
    plan = small_plan()[0]
    proof = HourlyProof({1: {1: 1}}, 0, None, bound, StatisticPlan(12.0, 3))
    return replace(plan, forecast=WEEK, certificate=replace(plan.certificate, hourly=proof))


@given(runs())
def test_a_run_that_was_read_back_is_the_same(run: RebalanceRun):
    assert run_of(LeaderRebalanceStatus.model_validate(json.loads(json.dumps(status_of(run).body())))) == run


def test_figures_of_hours_are_whole_numbers_and_text():
    week = plan_figures(by_hours(8.0)).body()["forecast"]
    assert week == {
        "hours": 168,
        "before": {"broker": 1, "hour": "Monday 01:00 UTC", "load": 20},
        "after": {"broker": 1, "hour": "Monday 02:00 UTC", "load": 10},
        "bound": 8,
        "gapPercent": "25.000",
        "statisticPlan": {"load": 12, "moves": 3},
    }
    assert "gapPercent" not in plan_figures(by_hours(0.0)).body()["forecast"]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(small_plan()[0], forecast=WEEK), "the highest load falls by"),
        (by_hours(8.0), "the load of the busiest hour falls by 50.0%"),
    ],
)
def test_a_plan_with_a_bound_by_hours_is_judged_by_its_busiest_hour(plan: RebalancePlan, said: str):
    assert said in on_planned(RebalanceRun(RunState.RUNNING), plan, Rebalance()).message


def test_fields_of_a_newer_version_are_ignored():
    said = {**status_of(RebalanceRun()).body(), "confidence": "high", "reason": "Unheard"}
    assert run_of(LeaderRebalanceStatus.model_validate(said)).reason is Reason.OTHER_VERSION


def test_a_long_message_is_cut():
    assert len(status_of(RebalanceRun(message="x" * 5000)).body()["message"]) == 1024
