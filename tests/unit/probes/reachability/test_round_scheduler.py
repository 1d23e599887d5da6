from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.probes.reachability.round_scheduler import Rounds, ThreadShares, WorkerPool, WorkItem
from bellwether.simulation.memory_world import ManualClock
from waiting import limit, until

CLOCK = SystemClock()


class Watch:
    """One that is due again after ``period`` seconds, and once brings its turn forward."""

    def __init__(self, period: float) -> None:
        self.period = period
        self.begun: list[float] = []
        self.stopped = False
        self.waiting = False
        self.forward: float | None = None

    def begin(self) -> float:
        self.begun.append(CLOCK.monotonic())
        self.waiting = True
        return self.begun[-1] + self.period

    def collect(self) -> float | None:
        self.waiting = False
        forward, self.forward = self.forward, None
        return forward


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    one = Rounds(WorkerPool(CLOCK), CLOCK)
    yield one
    one.stop(20)


def test_each_begins_again_when_it_is_due(rounds: Rounds) -> None:
    often, seldom = Watch(0.05), Watch(60)
    rounds.add(often)
    rounds.add(seldom, 0.2)
    until(lambda: len(often.begun) >= 8)
    assert len(seldom.begun) <= 1
    until(lambda: len(seldom.begun) == 1)
    assert all(later - earlier >= 0.05 for earlier, later in zip(often.begun, often.begun[1:], strict=False))


def test_round_that_is_brought_forward_replaces_one_that_was_due(rounds: Rounds) -> None:
    far, near = Watch(3600), Watch(0.1)
    far.forward = near.forward = CLOCK.monotonic()
    rounds.add(far)
    until(lambda: len(far.begun) == 2)
    rounds.add(near)
    until(lambda: len(near.begun) > 6)
    _, *later = (after - before for before, after in itertools.pairwise(near.begun))
    assert min(later) >= 0.1, "its pace is the old one, not twice that"


def test_one_that_has_stopped_begins_no_more(rounds: Rounds) -> None:
    watch = Watch(0.02)
    rounds.add(watch)
    until(lambda: len(watch.begun) > 2)
    watch.stopped = True
    other = Watch(0.02)
    rounds.add(other)
    until(lambda: len(other.begun) > 2)  # on the same thread: what was under way is over
    begun = len(watch.begun)
    until(lambda: len(other.begun) > 12)
    assert len(watch.begun) == begun


def test_it_can_be_stopped_and_started_again(rounds: Rounds) -> None:
    first = Watch(0.02)
    rounds.add(first)
    until(lambda: bool(first.begun))
    rounds.stop(20)
    begun = len(first.begun)
    second = Watch(0.02)
    rounds.add(second)
    until(lambda: len(second.begun) > 2)
    assert len(first.begun) == begun


def test_process_kept_from_its_work_knows_how_long(rounds: Rounds) -> None:
    """Held up by a thread that does not let go of the interpreter: to the rounds that is like too little CPU."""
    watch = Watch(0.05)
    rounds.add(watch)
    until(lambda: len(watch.begun) > 2)
    before = rounds.late_seconds
    held = CLOCK.monotonic()
    sum(range(30_000_000))  # one call in C, during which no other thread runs
    held = CLOCK.monotonic() - held
    until(lambda: rounds.late_seconds - before > held / 2)


def test_question_keeps_what_it_was_answered_or_what_went_wrong() -> None:
    questions = WorkerPool(SystemClock())
    good, bad = WorkItem(lambda: 42), WorkItem[int](lambda: 1 // 0)
    questions.put(good)
    questions.put(bad)
    until(lambda: good.done and bad.done)
    assert (good.result, good.error) == (42, None)
    assert bad.result is None
    assert isinstance(bad.error, ZeroDivisionError)


def test_few_are_asked_at_once_and_all_in_turn() -> None:
    questions = WorkerPool(SystemClock(), lanes=3, working_seconds=60)
    lock, now, most = threading.Lock(), [0], [0]

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1

    asked = [WorkItem(work) for _ in range(60)]
    for one in asked:
        questions.put(one)
    until(lambda: all(one.done for one in asked))
    assert most[0] <= 3
    began = [one.began for one in asked if one.began is not None]
    assert len(began) == 60
    assert began == sorted(began)


def test_waiting_items_delay_no_others() -> None:
    questions = WorkerPool(SystemClock(), lanes=2, working_seconds=0.05)
    answer = threading.Event()
    silent = [WorkItem(lambda: answer.wait(limit(30))) for _ in range(100)]
    for one in silent:
        questions.put(one)
    prompt = WorkItem(lambda: "here")
    questions.put(prompt)
    assert prompt.began is None

    def asked() -> bool:
        questions.tend()
        return prompt.done

    until(asked)
    assert not any(one.done for one in silent)
    assert questions.threads >= 100
    answer.set()
    until(lambda: all(one.done for one in silent))
    until(lambda: questions.threads <= 3)  # those who waited are gone, and a few are kept for the next question
    again = WorkItem(lambda: "still here")
    questions.put(again)
    until(lambda: again.done)


def test_seemingly_waiting_requests_keep_lanes_while_process_is_slow() -> None:
    clock = ManualClock()
    questions = WorkerPool(clock, lanes=1, working_seconds=0.01)
    answer = threading.Event()
    slow, next_ = WorkItem(lambda: answer.wait(limit(60))), WorkItem(lambda: "here")
    questions.put(slow)
    until(lambda: slow.began is not None)
    questions.put(next_)
    clock.advance(0.1)
    questions.tend(slow=True)
    time.sleep(0.05)
    assert next_.began is None
    questions.tend()
    until(lambda: next_.done)
    answer.set()


def test_an_item_that_has_not_begun_can_be_dropped() -> None:
    questions = WorkerPool(SystemClock(), lanes=1, working_seconds=60)
    answer = threading.Event()
    first, second = WorkItem(lambda: answer.wait(limit(60))), WorkItem(lambda: "never")
    questions.put(first)
    until(lambda: first.began is not None)
    questions.put(second)
    questions.clear()
    answer.set()
    until(lambda: first.done)
    time.sleep(0.05)
    assert second.began is None


def test_silent_brokers_of_one_pool_take_no_thread_of_others() -> None:
    shares, answer = ThreadShares(most=8, least=2), threading.Event()
    silent_pool, other = (WorkerPool(SystemClock(), working_seconds=0.01, shares=shares) for _ in range(2))
    silent = [WorkItem(lambda: answer.wait(limit(30))) for _ in range(40)]
    for one in silent:
        silent_pool.put(one)

    def full() -> bool:
        silent_pool.tend()
        return silent_pool.threads == sum(one.began is not None for one in silent) == 8

    until(full)
    prompt = [WorkItem(lambda: "here") for _ in range(20)]
    for item in prompt:
        other.put(item)
    until(lambda: all(item.done for item in prompt))
    assert (silent_pool.threads, other.threads <= 4) == (8, True)
    answer.set()
    until(lambda: all(one.done for one in silent))


def test_pool_above_its_share_gives_threads_back() -> None:
    shares, answer = ThreadShares(most=8, least=2), threading.Event()
    large, others = (WorkerPool(SystemClock(), working_seconds=0.01, shares=shares) for _ in range(2))
    asked = [WorkItem(lambda: answer.wait(0.05)) for _ in range(400)]
    for one in asked:
        large.put(one)
    silent = [WorkItem(lambda: answer.wait(limit(30))) for _ in range(40)]
    for item in silent:
        others.put(item)

    def shared() -> bool:
        large.tend()
        others.tend()
        return large.threads == others.threads == 4

    until(shared)
    answer.set()
    until(lambda: all(one.done for one in (*asked, *silent)))
