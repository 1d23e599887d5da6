from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellwether.core.rebalance.forecast import BrokerHour, Forecast
from bellwether.core.rebalance.hourly_proof import HourlyProof, StatisticPlan
from bellwether.core.rebalance.lifecycle import RebalanceFigures
from bellwether.core.strict_json import InvalidDocument, StrictObject
from testkit.loads.plan_pages import small_plan
from testkit.messages import assert_wording

MADE = HourlyProof({38: {7: 3, 8: 0}, 9: {7: 1}}, 4, 12, 9.5, StatisticPlan(11.0, 3))


def test_a_proof_is_read_as_it_was_written():
    for made in (MADE, replace(MADE, partition=None, statistic_plan=None)):
        assert HourlyProof.read(StrictObject(made.document(), "certificate.hourly")) == made


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": {"168": {}}}, "each name must be an hour of the week"),
        ({"weights": {"x": {}}}, "each name must be an hour of the week"),
        ({"weights": {"3": {"x": 1}}}, "each name must be the id of a broker"),
        ({"weights": {"3": {"1": -1}}}, "hourly.weights.3.1 is -1"),
        ({"weights": {"3": 1}}, "weights.3 is 1"),
        ({"partition": -1}, "partition is -1"),
        ({"statisticPlan": {"load": 1.0}}, "partitions is missing"),
        ({"rack": "a"}, "unknown"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], said: str):
    with pytest.raises(InvalidDocument, match=said):
        HourlyProof.read(StrictObject({**MADE.document(), **change}, "certificate.hourly"))


def test_a_plan_by_hours_is_worth_what_the_busiest_hour_loses():
    plan = small_plan()[0]
    seen = Forecast(168, BrokerHour(1, 1, 20.0), BrokerHour(1, 2, 10.0))
    alone = RebalanceFigures.of(replace(plan, forecast=seen))
    assert (alone.improvement, alone.judged) == (1 - plan.after.max / plan.before.max, "the highest load")
    proved = replace(plan, forecast=seen, certificate=replace(plan.certificate, hourly=replace(MADE, bound=8.0)))
    figures = RebalanceFigures.of(proved)
    assert figures.improvement == 0.5
    assert_wording(figures.judged)
    assert figures.hourly is not None
    assert figures.hourly.gap == pytest.approx(0.25)
    nothing = replace(proved, certificate=replace(plan.certificate, hourly=replace(MADE, bound=0.0)))
    found = RebalanceFigures.of(nothing).hourly
    assert found is not None
    assert found.gap is None
