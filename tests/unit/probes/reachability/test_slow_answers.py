"""Which brokers a vantage calls slow."""

from __future__ import annotations

import pytest

from bellwether.probes.reachability.slow_answers import SlowAnswers


def asked(seconds: float, *, times: int = 3, peers: tuple[float, ...] = (0.002, 0.003), inside: float = 0.002) -> bool:
    """Whether broker 1 is slow after so many answers, while its peers answer in that time."""
    answers = SlowAnswers()
    for _ in range(times):
        for broker, usual in enumerate(peers, 2):
            answers.answered("EXTERNAL", broker, usual, inside)
        answers.answered("EXTERNAL", 1, seconds, inside)
    return answers.slow("EXTERNAL", 1)


def test_a_hundred_times_its_peers_latency_is_slow() -> None:
    assert asked(0.229)


@pytest.mark.parametrize(
    ("seconds", "peers", "inside"),
    [
        pytest.param(0.05, (0.002, 0.003), 0.002, id="twenty times, and not noticeable"),
        pytest.param(0.4, (0.09, 0.09), 0.002, id="a few times: another region"),
        pytest.param(0.4, (0.002, 0.4), 0.3, id="as slow inside: the broker, which other probes judge"),
        pytest.param(5.0, (), 0.002, id="no peer to compare with"),
    ],
)
def test_what_is_not_slow(seconds: float, peers: tuple[float, ...], inside: float) -> None:
    assert not asked(seconds, peers=peers, inside=inside)


def test_a_single_late_answer_is_not_slow() -> None:
    assert not asked(1.9, times=2)


def test_a_fast_answer_ends_it() -> None:
    answers = SlowAnswers()
    answers.answered("EXTERNAL", 2, 0.002, None)
    for seconds in (0.3, 0.3, 0.3):
        answers.answered("EXTERNAL", 1, seconds, None)
    assert answers.slow("EXTERNAL", 1)
    answers.answered("EXTERNAL", 1, 0.01, None)
    assert not answers.slow("EXTERNAL", 1)


def test_a_broker_that_is_forgotten_is_no_peer() -> None:
    answers = SlowAnswers()
    answers.answered("EXTERNAL", 2, 0.002, None)
    answers.forget(2)
    for _ in range(3):
        answers.answered("EXTERNAL", 1, 0.3, None)
    assert not answers.slow("EXTERNAL", 1)
