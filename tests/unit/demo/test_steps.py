import pytest

from demo.settings import Settings
from demo.steps import Act, Progress, about, steps

BROKERS = (1, 2, 3)


def acts(**more: object) -> list[Act]:
    return [step.act for step in steps(Settings(**more), BROKERS)]  # type: ignore[arg-type]


def test_the_listener_is_cut_without_bellwether_and_with_it_and_then_a_disk_is_slow() -> None:
    listener = [Act.BASELINE, Act.WITHOUT, Act.WITH, Act.REPAIR]

    assert acts() == [*listener, Act.WITH, Act.REPAIR, Act.COUNT]
    assert acts(only="listener") == [*listener, Act.COUNT]
    assert acts(only="disk") == [Act.BASELINE, Act.WITH, Act.REPAIR, Act.COUNT]


def test_repetitions_go_round_the_brokers_and_have_one_control() -> None:
    found = steps(Settings(repeat=3), BROKERS)

    assert [step.broker for step in found if step.act is Act.WITH] == [1, 2, 2, 3, 3, 1]
    assert sum(step.act is Act.WITHOUT for step in found) == 1


def test_the_steps_of_a_run_take_less_than_three_minutes() -> None:
    assert sum(step.seconds for step in steps(Settings(), BROKERS)) < 180


def test_the_heading_says_which_step_of_how_many_and_how_long_is_left() -> None:
    progress = Progress(steps(Settings(only="disk"), BROKERS))
    total = progress.left(0.0)
    assert progress.heading(0.0) == "getting ready"

    progress.begin(100.0)

    assert progress.left(103.0) == total - 3
    assert progress.heading(100.0).startswith("step 1 of 4, about")


def test_a_step_that_takes_longer_than_expected_leaves_the_time_of_the_later_ones() -> None:
    planned = steps(Settings(only="disk"), BROKERS)
    progress = Progress(planned)
    progress.begin(0.0)

    assert progress.left(1000.0) == sum(step.seconds for step in planned[1:])


@pytest.mark.parametrize(("seconds", "words"), [(0, "about 5 s"), (43, "about 45 s"), (150, "about 2.5 min")])
def test_a_time_to_wait_is_no_more_exact_than_it_can_be_known(seconds: float, words: str) -> None:
    assert about(seconds) == words
