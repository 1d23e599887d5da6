"""Which brokers a vantage calls slow."""

from __future__ import annotations

import random
import sys
import threading
import time
from statistics import median

import pytest

from bellwether.probes.reachability.asked_round import SlowAnswers


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


def test_thousand_brokers_are_compared_in_time_that_their_number_takes() -> None:
    def took(brokers: int) -> float:
        answers = SlowAnswers()
        for broker in range(brokers):
            answers.answered("EXTERNAL", broker, random.random(), None)
        began = time.process_time()
        for broker in range(brokers):
            answers.answered("EXTERNAL", broker, random.random(), None)
        return time.process_time() - began

    assert min(took(4000) for _ in range(3)) < 40 * min(took(400) for _ in range(3))


def test_peers_are_compared_by_their_last_answers() -> None:
    draw, answers, last = random.Random(5), SlowAnswers(), dict[int, float]()
    for _ in range(500):
        broker, seconds = draw.randrange(6), draw.choice([0.001, 0.02, 0.1, 0.5])
        if draw.random() < 0.1:
            answers.forget(broker)
            last.pop(broker, None)
            continue
        peers = [s for b, s in last.items() if b != broker]
        usual = median(peers) if peers else 1.0
        for _ in range(3):
            answers.answered("EXTERNAL", broker, seconds, None)
        last[broker] = seconds
        assert answers.slow("EXTERNAL", broker) is (seconds >= max(10 * usual, usual + 0.1))


def test_broker_is_forgotten_while_other_threads_answer() -> None:
    answers, over, before = SlowAnswers(), threading.Event(), sys.getswitchinterval()

    def forget() -> None:
        while not over.is_set():
            for broker in range(50):
                answers.forget(broker)

    other = threading.Thread(target=forget)
    sys.setswitchinterval(1e-6)
    try:
        other.start()
        for number in range(20_000):
            answers.answered("EXTERNAL", number % 50, number % 7 / 100, None)
    finally:
        over.set()
        other.join()
        sys.setswitchinterval(before)
