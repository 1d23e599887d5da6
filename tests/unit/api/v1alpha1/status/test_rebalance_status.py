"""A rebalance in a policy's status: whole numbers, the same bytes once it was read back, and room for its worst day."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bellwether.api.v1alpha1.status.rebalance_status import PlanFigures, RebalanceStatus
from bellwether.core.model.undo_record import SkippedPartition
from bellwether.core.reasons import Reason
from bellwether.core.rebalance.forecast import WEEK, BrokerHour, Forecast
from bellwether.core.rebalance.hourly_proof import StatisticPlan
from bellwether.core.rebalance.lifecycle import HourlyFigures, RebalanceFigures, RebalanceRun, RunState, UncappedFigures

WHOLE = st.integers(0, 10**15)
BROKER_HOURS = st.builds(BrokerHour, WHOLE, st.integers(0, WEEK - 1), st.floats(0, 1e15))
FIGURES = st.builds(
    RebalanceFigures,
    before=st.floats(0, 1e15),
    after=st.floats(0, 1e15),
    spread_before=st.floats(0, 1e4),
    spread_after=st.floats(0, 1e4),
    bound=st.floats(0, 1e15),
    gap=st.none() | st.floats(-1e-9, 1e3),
    moves=WHOLE,
    reorders=WHOLE,
    load=WHOLE,
    least_load=WHOLE,
    without_consumption=WHOLE,
    bound_reason=st.text(max_size=200),
    uncapped=st.none() | st.builds(UncappedFigures, after=st.floats(0, 1e15), bound=st.floats(0, 1e15), moves=WHOLE),
    forecast=st.none() | st.builds(Forecast, st.integers(1, WEEK), BROKER_HOURS, BROKER_HOURS),
    hourly=st.none()
    | st.builds(
        HourlyFigures,
        st.floats(0, 1e15),
        st.none() | st.floats(0, 1e4),
        st.none() | st.builds(StatisticPlan, st.floats(0, 1e15), WHOLE),
    ),
)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=0)
)
REASONS = st.sampled_from(["ChangedSincePlan", "Reassigning", "SkippedInWave"])


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
        figures=draw(st.none() | FIGURES),
        taken_up=sum(left.values()) + draw(st.integers(0, 10**6)),
        left=left,
        sample=tuple(
            draw(st.lists(st.builds(SkippedPartition, st.just("orders"), st.integers(0, 99), REASONS), max_size=20))
        ),
    )


@given(runs())
def test_a_run_that_was_read_back_says_the_same(run: RebalanceRun):
    said = RebalanceStatus.of(run).body()
    again = RebalanceStatus.model_validate(json.loads(json.dumps(said))).to_core()
    assert RebalanceStatus.of(again).body() == said
    assert RebalanceRun(**{**vars(again), "figures": None}) == RebalanceRun(**{**vars(run), "figures": None})


@given(FIGURES)
def test_figures_are_whole_or_text(figures: RebalanceFigures):
    said = PlanFigures.of(figures).body()
    uncapped = said.pop("withoutCap", {})
    seen = said.pop("forecast", {"hours": 1, "before": {}, "after": {}})
    parts = (uncapped, seen.pop("before"), seen.pop("after"), seen.pop("statisticPlan", {}), seen, said)
    assert {type(value) for part in parts for value in part.values()} <= {int, str}


def test_what_a_newer_version_says_is_passed_over():
    said = {**RebalanceStatus.of(RebalanceRun()).body(), "confidence": "high", "reason": "Unheard"}
    assert RebalanceStatus.model_validate(said).to_core().reason is Reason.OTHER_VERSION


def test_an_endless_message_is_cut():
    assert len(RebalanceStatus.of(RebalanceRun(message="x" * 5000)).body()["message"]) == 1024
