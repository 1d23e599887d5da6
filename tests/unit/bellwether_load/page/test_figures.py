from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.page.figures import Unit, change, percent, ticks


@pytest.mark.parametrize(
    ("largest", "value", "said"),
    [
        (170.4e6, 170.4489e6, "170.4 MB/s"),
        (24.6e6, 2.3e6, "2.30 MB/s"),
        (5e9, 5e9, "5.00 GB/s"),
        (3e12, 2.5e12, "2.50 TB/s"),
        (999, 12, "12.0 B/s"),
        (1500, 1500, "1.50 kB/s"),
        (0, 0, "0 B/s"),
        (0.25, 0.25, "0 B/s"),
    ],
)
def test_bytes_per_second_are_said_in_the_unit_of_the_largest(largest: float, value: float, said: str) -> None:
    assert Unit.of(largest).said(value) == said


def test_shares_have_as_many_digits_as_tell_something() -> None:
    assert [percent(s) for s in (1.374, 0.05, 0.0022, 0.0, None)] == ["137.4 %", "5.0 %", "0.22 %", "0.00 %", "none"]
    assert percent(0.12345, 2) == "12.35 %"


def test_changes_are_signed() -> None:
    assert [change(200.0, 100.0), change(100.0, 105.0), change(0.0, 0.0), change(0.0, 1.0)] == [
        "−50.0 %",
        "+5.0 %",
        "no change",
        "new",
    ]


def test_ticks_are_round_and_reach_the_largest() -> None:
    assert ticks(385.9) == [0, 100, 200, 300, 400]
    assert ticks(24.6) == [0, 5, 10, 15, 20, 25]
    assert ticks(1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(0) == [0, 1]


@given(st.floats(1e-6, 1e15), st.integers(3, 8))
def test_there_are_never_more_ticks_than_asked_for_and_the_last_covers_all(largest: float, most: int) -> None:
    marks = ticks(largest, most)
    assert 2 <= len(marks) <= most + 1
    assert marks[0] == 0
    assert marks[-1] >= largest * (1 - 1e-6)
    assert marks[-2] < largest


def test_small_figures_keep_two_digits_in_the_unit_of_the_page() -> None:
    unit = Unit.of(24.6e6)
    assert [unit.bare(v) for v in (2.3e6, 99_999, 12_345, 31, 0)] == ["2.30", "0.100", "0.012", "0.000031", "0.00"]
