"""Waiting for what will be so: a look that the API does not answer counts as not yet."""

from __future__ import annotations

import pytest

from node.kubectl import KubectlFailed, eventually


def test_a_look_that_the_api_did_not_answer_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    answers = iter([KubectlFailed("refused"), 3, 7])

    def look() -> int:
        if isinstance(answer := next(answers), KubectlFailed):
            raise answer
        return answer

    assert eventually(look, lambda seen: seen > 3, 60, "never") == 7
