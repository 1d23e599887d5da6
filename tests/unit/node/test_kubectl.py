"""Waiting for what will be so: a look that fails counts as not yet, and what was seen last is told."""

from __future__ import annotations

import itertools

import pytest

from node.kubectl import KubectlFailed, eventually
from waiting import TooLate


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def test_what_was_seen_when_it_was_so_is_returned() -> None:
    numbers = itertools.count()
    assert eventually(lambda: next(numbers), lambda seen: seen > 2, 60, "never") == 3


def test_a_look_that_the_api_did_not_answer_is_tried_again() -> None:
    answers = iter([KubectlFailed("refused"), 7])

    def look() -> int:
        if isinstance(answer := next(answers), KubectlFailed):
            raise answer
        return answer

    assert eventually(look, bool, 60, "never") == 7


def test_what_never_came_is_told_with_what_was_seen_last() -> None:
    with pytest.raises(TooLate, match=r"the broker still leads\nseen last: 12"):
        eventually(lambda: 12, lambda led: led == 0, 0, "the broker still leads")


def test_an_api_that_never_answered_is_told_by_its_last_word() -> None:
    def look() -> int:
        raise KubectlFailed("connection refused")

    with pytest.raises(TooLate, match=r"connection refused"):
        eventually(look, bool, 0, "nothing is there")
