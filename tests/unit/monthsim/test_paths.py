import numpy as np
import pytest

from bellwether.core.detection import Reachability
from bellwether.core.signals import Reading
from monthsim.episodes import ALL_VANTAGES, Path, PathEffect
from monthsim.paths import News, Question, fails_by_loss, watch

SETTINGS = Reachability()


def effect(what: Path, seconds: float, *, internal: bool = False, level: float = 0.0) -> PathEffect:
    return PathEffect(1000.0, 1000.0 + seconds, what, (0,), ALL_VANTAGES, internal=internal, level=level)


def news(*effects: PathEffect, phase: float = 0.5, seed: int = 1) -> list[News]:
    outside = Question(0.05, tuple(e for e in effects if e.external))
    inside = Question(0.01, tuple(e for e in effects if e.internal))
    return watch(0, 0, phase, outside, inside, SETTINGS, np.random.default_rng(seed))


def told(found: list[News]) -> list[tuple[Reading, Reading]]:
    return [(n.signal.reading, n.signal.control) for n in found]


def test_a_cut_fails_at_the_third_refusal_and_passes_at_the_third_answer() -> None:
    found = news(effect(Path.REFUSED, 600.0))
    assert told(found) == [(Reading.FAILING, Reading.PASSING), (Reading.PASSING, Reading.PASSING)]
    assert [n.time for n in found] == pytest.approx([1002.51, 1602.55], abs=0.05)


def test_a_black_hole_fails_two_seconds_later_than_a_cut() -> None:
    assert news(effect(Path.DROPPED, 600.0))[0].time == pytest.approx(1004.5, abs=0.05)


def test_a_pause_that_is_shorter_than_three_rounds_that_time_out_is_no_news() -> None:
    assert news(effect(Path.FROZEN, 4.0, internal=True)) == []


def test_a_pause_of_nine_seconds_fails_inside_and_outside_alike() -> None:
    assert told(news(effect(Path.FROZEN, 9.0, internal=True))) == [
        (Reading.FAILING, Reading.FAILING),
        (Reading.PASSING, Reading.PASSING),
    ]


def test_a_question_asked_in_the_last_second_of_a_black_hole_is_answered_at_the_retry() -> None:
    question = Question(0.05, (effect(Path.DROPPED, 10.0),))
    assert question.ask(1009.2, 2.0)[0].ok
    assert not question.ask(1008.5, 2.0)[0].ok


def test_losing_everything_is_a_black_hole_and_losing_nothing_is_none() -> None:
    assert fails_by_loss(0.0) == 0.0
    assert fails_by_loss(1.0) == 1.0
    assert fails_by_loss(0.1) < fails_by_loss(0.3) < fails_by_loss(0.6)


def test_losses_fail_as_often_as_they_should() -> None:
    question = Question(0.05, (effect(Path.LOSSY, 5000.0, level=0.5),))
    lost = question.lost(np.arange(1000.0, 6000.0), np.random.default_rng(5))
    assert float(lost.mean()) == pytest.approx(fails_by_loss(0.5), abs=0.03)


def test_a_light_burst_of_loss_is_passed_over() -> None:
    assert news(effect(Path.LOSSY, 30.0, level=0.05)) == []


def test_a_heavy_burst_of_loss_is_seen() -> None:
    assert told(news(effect(Path.LOSSY, 60.0, level=0.95)))[0] == (Reading.FAILING, Reading.PASSING)
