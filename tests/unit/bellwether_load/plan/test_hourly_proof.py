from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellwether.core.strict_json import InvalidDocument, StrictObject
from bellwether_load.plan.hourly_proof import HourlyProof, StatisticPlan

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
