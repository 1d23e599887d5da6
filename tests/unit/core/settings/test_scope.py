"""Which topics a scope covers."""

from __future__ import annotations

import pytest

from bellwether.core.settings.placement import EVERY_TOPIC, Scope


@pytest.mark.parametrize(
    ("scope", "topic", "covered"),
    [
        (EVERY_TOPIC, "orders", True),
        (Scope(included=("orders-*",)), "orders-eu", True),
        (Scope(included=("orders-*",)), "payments", False),
        (Scope(excluded=("__*",)), "__consumer_offsets", False),
        (Scope(excluded=("__*",)), "orders", True),
        (Scope(included=("orders-*",), excluded=("*-test",)), "orders-test", False),
        (Scope(included=("order?",)), "orders", True),
        (Scope(included=("orders",)), "Orders", False),
        (Scope(included=("a.b",)), "axb", False),
    ],
)
def test_topic_is_in_scope_if_included_and_not_excluded(scope: Scope, topic: str, covered: bool):
    assert scope.covers(topic) is covered


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["*a" * 124 + "b", "?*" * 124 + "b", "*" * 248 + "b", "*a*?" * 62 + "b"])
def test_no_pattern_takes_exponential_time(pattern: str):
    assert not Scope(included=(pattern,)).covers("a" * 248 + "c")
