from __future__ import annotations

import pytest

from bellwether_load.page.figures import Unit, change, percent


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


def test_small_figures_keep_two_digits_in_the_unit_of_the_page() -> None:
    unit = Unit.of(24.6e6)
    assert [unit.bare(v) for v in (2.3e6, 99_999, 12_345, 31, 0)] == ["2.30", "0.100", "0.012", "0.000031", "0.00"]
