import pytest

from monthsim.poisson import at_most, upper_bound


@pytest.mark.parametrize(
    ("count", "bound"), [(0, 2.9957), (1, 4.7439), (2, 6.2958), (3, 7.7537), (10, 16.9622), (100, 118.08)]
)
def test_the_bound_is_the_one_of_the_published_tables(count: int, bound: float) -> None:
    assert upper_bound(count) == pytest.approx(bound, rel=1e-3)


def test_three_thousand_quiet_months_are_just_enough_for_one_in_a_thousand() -> None:
    assert upper_bound(0) / 3000 * 1000 < 1.0 < upper_bound(0) / 2990 * 1000


def test_at_the_bound_so_few_are_seen_once_in_twenty() -> None:
    assert at_most(4, upper_bound(4)) == pytest.approx(0.05, abs=1e-6)
