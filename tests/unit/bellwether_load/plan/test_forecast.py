from __future__ import annotations

from bellwether_load.plan.forecast import WEEK, BrokerHour, hours_unknown
from testkit.messages import assert_wording


def test_an_hour_is_named_by_weekday_and_time():
    assert [BrokerHour(1, hour, 0.0).moment for hour in (0, 38, 167)] == [
        "Monday 00:00 UTC",
        "Tuesday 14:00 UTC",
        "Sunday 23:00 UTC",
    ]


def test_hours_that_are_not_known_are_said():
    assert hours_unknown(WEEK) == ""
    assert_wording(hours_unknown(9))
