import numpy as np
import pytest

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Reading
from monthsim.episodes import ALL_VANTAGES, Path, PathEffect
from monthsim.paths import RETRY_SHARE, News, Question, fails_by_loss, plain, watch

SETTINGS = Reachability()


def effect(what: Path, seconds: float, *, internal: bool = False, level: float = 0.0) -> PathEffect:
    return PathEffect(1000.0, 1000.0 + seconds, what, (0,), ALL_VANTAGES, internal=internal, level=level)


def news(*effects: PathEffect, phase: float = 0.5, seed: int = 1) -> list[News]:
    outside = Question(0.05, tuple(e for e in effects if e.external))
    inside = Question(0.01, tuple(e for e in effects if e.internal))
    return watch(0, 0, phase, outside, inside, SETTINGS, np.random.default_rng(seed))


def noted(found: list[News]) -> list[tuple[Reading, Reading]]:
    """What is said to be Failing or Passing, without the words between and without repetitions."""
    known = [(n.signal.reading, n.signal.control) for n in found if n.signal.reading is not Reading.UNKNOWN]
    return [one for one, before in zip(known, [None, *known], strict=False) if one != before]


def first(found: list[News], reading: Reading) -> float:
    return next(n.time for n in found if n.signal.reading is reading)


def test_cut_fails_at_third_refusal_and_its_harm_grows() -> None:
    found = news(effect(Path.REFUSED, 600.0))
    assert first(found, Reading.FAILING) == pytest.approx(1000.5 + 2 * RETRY_SHARE * SETTINGS.period_seconds, abs=0.05)
    harms = [n.signal.harm.lost_seconds for n in found if n.signal.harm is not None]
    assert harms[0] >= 1.0
    assert max(harms) > 5
    assert noted(found)[0] == (Reading.FAILING, Reading.PASSING)
    assert noted(found)[-1] == (Reading.PASSING, Reading.PASSING)
    assert 1604.0 < found[-1].time < 1662.0


def test_a_black_hole_fails_later_than_a_cut_by_the_time_after_which_an_answer_is_late() -> None:
    later = first(news(effect(Path.DROPPED, 600.0)), Reading.FAILING) - first(
        news(effect(Path.REFUSED, 600.0)), Reading.FAILING
    )
    assert later == pytest.approx(SETTINGS.late_after_seconds, abs=0.05)


def test_plain_probe_counts_three_in_row_at_even_pace() -> None:
    question = Question(0.05, (effect(Path.REFUSED, 600.0),))
    found = plain(0, 0, 0.5, question, np.random.default_rng(1))
    assert [n.signal.reading for n in found] == [Reading.FAILING, Reading.PASSING]
    assert [n.time for n in found] == pytest.approx([1002.5, 1602.5], abs=0.1)


def test_a_pause_that_is_shorter_than_two_rounds_that_time_out_is_no_news() -> None:
    assert news(effect(Path.FROZEN, 2.0, internal=True)) == []


def test_a_pause_of_nine_seconds_fails_inside_and_outside_alike() -> None:
    found = news(effect(Path.FROZEN, 9.0, internal=True))
    assert noted(found)[0] == (Reading.FAILING, Reading.FAILING)
    assert noted(found)[-1] == (Reading.PASSING, Reading.PASSING)
    assert (Reading.FAILING, Reading.PASSING) not in noted(found)


def test_question_that_times_out_is_no_answer_whatever_hour() -> None:
    question = Question(0.05, (effect(Path.DROPPED, 600.0),))
    assert not any(question.ask(1022.0 + n / 977, 2.0)[0].ok for n in range(3000))


def test_a_question_asked_in_the_last_second_of_a_black_hole_is_answered_at_the_retry() -> None:
    question = Question(0.05, (effect(Path.DROPPED, 10.0),))
    assert question.ask(1009.2, 2.0)[0].ok
    assert not question.ask(1008.5, 2.0)[0].ok


def test_losing_everything_is_black_hole_and_losing_nothing_is_none() -> None:
    assert fails_by_loss(0.0) == 0.0
    assert fails_by_loss(1.0) == 1.0
    assert fails_by_loss(0.1) < fails_by_loss(0.3) < fails_by_loss(0.6)


def test_losses_fail_as_often_as_they_should() -> None:
    question = Question(0.05, (effect(Path.LOSSY, 5000.0, level=0.5),))
    luck = np.random.default_rng(5).random(5000)
    lost = [question.loses(1000.0 + n, float(one)) for n, one in enumerate(luck)]
    assert (
        sum(lost) / 5000
        == pytest.approx(fails_by_loss(0.5), abs=0.03)
        == pytest.approx(question.worst_loss(), abs=0.03)
    )
    assert not question.loses(999.0, 0.0)


def test_a_light_burst_of_loss_changes_no_reading() -> None:
    assert news(effect(Path.LOSSY, 30.0, level=0.05)) == []


def test_a_heavy_burst_of_loss_is_seen() -> None:
    assert noted(news(effect(Path.LOSSY, 60.0, level=0.95)))[0] == (Reading.FAILING, Reading.PASSING)
