"""How long a contested order waits before it is asserted again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.model.refusals import contest_delay
from testkit.values.builders import entry


@pytest.mark.parametrize(
    ("contests", "seconds"), [(0, 0), (1, 5), (2, 10), (3, 20), (7, 320), (8, 600), (9, 600), (10_000, 600)]
)
def test_re_assertion_waits_twice_as_long_each_time_up_to_ten_minutes(contests: int, seconds: int) -> None:
    assert contest_delay(replace(entry(), contests=contests)).total_seconds() == seconds
