from __future__ import annotations

from typing import Any

import pytest

from bellwether.core.strict_json import InvalidDocument, StrictObject
from bellwether_load.plan.forecast import WEEK, BrokerHour, Forecast, hours_unknown
from testkit.messages import assert_wording

MADE = Forecast(WEEK, BrokerHour(7, 0, 12.5), BrokerHour(8, 38, 10.0))


def test_an_hour_is_named_by_weekday_and_time():
    assert [BrokerHour(1, hour, 0.0).moment for hour in (0, 38, 167)] == [
        "Monday 00:00 UTC",
        "Tuesday 14:00 UTC",
        "Sunday 23:00 UTC",
    ]


@pytest.mark.parametrize("hour", range(WEEK))
def test_the_words_are_read_back_as_the_same_hour(hour: int):
    made = BrokerHour(3, hour, 9.0)
    assert BrokerHour.at(3, made.moment, 9.0) == made


def test_a_forecast_is_read_as_it_was_written():
    assert Forecast.read(StrictObject(MADE.document())) == MADE


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        (("hours",), 0, "hours is 0"),
        (("hours",), 169, "a week has 168"),
        (("before", "hour"), 168, "hour is 168"),
        (("after", "load"), -1.0, "load is -1.0"),
        (("after", "rack"), "a", "unknown"),
    ],
)
def test_what_cannot_be_is_refused(part: tuple[str, ...], value: object, said: str):
    document: Any = MADE.document()
    inner = document if len(part) == 1 else document[part[0]]
    inner[part[-1]] = value
    with pytest.raises(InvalidDocument, match=said):
        Forecast.read(StrictObject(document))


def test_hours_that_are_not_known_are_said():
    assert hours_unknown(WEEK) == ""
    assert_wording(hours_unknown(9))
