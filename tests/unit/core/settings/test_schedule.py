"""Five-field cron expressions in UTC: when the next time is, and which time that has passed is still due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bellwether.core.settings.schedule import Schedule

SATURDAY = datetime(2026, 11, 21, 12, 30, 15, 250_000, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


@pytest.mark.parametrize(
    ("expression", "then"),
    [
        pytest.param("0 4 * * *", "2026-11-22T04:00", id="every night"),
        pytest.param("*/15 * * * *", "2026-11-21T12:45", id="every quarter of an hour"),
        pytest.param("31 12 * * *", "2026-11-21T12:31", id="the next minute"),
        pytest.param("30 12 * * *", "2026-11-22T12:30", id="a minute that has begun is over"),
        pytest.param("0 4 * * MON", "2026-11-23T04:00", id="a weekday by its name"),
        pytest.param("0 0 29 2 *", "2028-02-29T00:00", id="a day of leap years"),
    ],
)
def test_the_next_time_of_a_schedule(expression: str, then: str):
    assert Schedule(expression).after(SATURDAY) == utc(then)


def test_times_are_utc_in_every_time_zone():
    kiritimati = SATURDAY.astimezone(timezone(timedelta(hours=14)))
    assert Schedule("0 4 * * *").after(kiritimati) == utc("2026-11-22T04:00")


@pytest.mark.parametrize(
    "expression", ["", "0 4 * *", "0 0 4 * * *", "@daily", "61 * * * *", "0 4 * * FUNDAY", "0 0 31 2 *", "a b c d e"]
)
def test_what_is_no_schedule_is_refused_with_example_of_one(expression: str):
    with pytest.raises(ValueError, match=r"is not a schedule \(.+\): use minute, hour.+'0 4 \* \* \*'"):
        Schedule(expression)


def test_without_a_note_the_next_time_is_due():
    assert Schedule("0 4 * * *").due(None, SATURDAY) == utc("2026-11-22T04:00")


def test_a_noted_time_that_was_missed_is_still_due():
    assert Schedule("0 4 * * *").due(utc("2026-11-19T04:00"), SATURDAY) == utc("2026-11-19T04:00")


def test_a_noted_time_to_come_stays():
    assert Schedule("0 4 * * *").due(utc("2026-11-22T04:00"), SATURDAY) == utc("2026-11-22T04:00")


@pytest.mark.parametrize("noted", ["2026-11-22T05:00", "2026-11-19T05:00"])
def test_a_noted_time_of_another_schedule_counts_no_more(noted: str):
    assert Schedule("0 4 * * *").due(utc(noted), SATURDAY) == utc("2026-11-22T04:00")


def test_noted_time_that_lies_beyond_next_counts_no_more():
    """Every Monday has become every night: Monday is a time of that, too, and not the next."""
    assert Schedule("0 4 * * *").due(utc("2026-11-23T04:00"), SATURDAY) == utc("2026-11-22T04:00")
