from __future__ import annotations

import pytest

from bellwether_load.histories.rules import Rules


@pytest.mark.parametrize("name", ["shortest", "longest", "peak"])
@pytest.mark.parametrize("value", [0, -60])
def test_a_time_that_is_no_time_is_refused_by_name(name: str, value: int):
    with pytest.raises(ValueError, match=f"^{name} must be at least one second, and is {value}$"):
        Rules(**{name: value})


def test_a_gap_may_not_be_shorter_than_the_least_step():
    with pytest.raises(ValueError, match=r"longest \(20 s\) must not be less than shortest \(30 s\)"):
        Rules(shortest=30, longest=20)


def test_the_least_step_may_be_the_longest_gap():
    assert Rules(shortest=60, longest=60).longest == 60
