from __future__ import annotations

import pytest

from bellwether.recording.traces.trace_lines import UnreadableTrace
from bellwether.recording.traces.trace_state import following


def test_the_state_is_what_the_news_make_of_it():
    state = following({"heard": {"a/b": 1}, "said": {}}, {"heard": {"a/b": 2}, "away": {"Kafka": "gone"}})
    assert state == {"heard": {"a/b": 2}, "said": {}, "away": {"Kafka": "gone"}}


def test_a_member_may_go():
    assert following({"away": {}}, {"away": None}) == {}


def test_a_member_of_a_later_version_is_kept():
    assert following({}, {"weather": {"sunny": 1}}) == {"weather": {"sunny": 1}}


@pytest.mark.parametrize(
    "news",
    [
        {"signals": []},
        {"heard": 1},
        {"said": {"x": {}}},
        {"said": {"1": "Healthy"}},
        {"said": {"1": {"verdict": "Healthy"}}},
        {"overrides": {"-1": {}}},
        {"demoted": {"1" * 11: {}}},
        {"signals": {"1": 4}},
        {"returning": {"1": 10}},
        {"returning": {"x": {}}},
    ],
    ids=str,
)
def test_a_member_of_another_shape_is_refused(news: dict[str, object]):
    with pytest.raises(UnreadableTrace, match=r"(of|in) the trace"):
        following({}, news)


def test_news_that_nest_too_deeply_are_refused():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(UnreadableTrace, match="too deeply"):
        following({}, deep)
