from __future__ import annotations

import threading
import time

from bellwether.adapters.clocks import SystemClock
from bellwether.probes.reachability.round_scheduler import WorkerPool, WorkItem
from bellwether.simulation.memory_world import ManualClock
from waiting import limit, until


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
