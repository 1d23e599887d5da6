"""How long a contested order waits before it is asserted again."""

from __future__ import annotations

import pytest

from bellwether.core.model.refusals import back_off


@pytest.mark.parametrize(("times", "seconds"), [(1, 5), (2, 10), (3, 20), (7, 320), (8, 600), (9, 600), (10_000, 600)])
def test_re_assertion_waits_double_each_time_up_to_ten_minutes(times: int, seconds: int) -> None:
    assert back_off(times).total_seconds() == seconds
