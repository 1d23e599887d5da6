"""Rack preferences by topic: which rule counts."""

from __future__ import annotations

from bellwether.core.settings.placement import Placement, Preference, TopicRule


def test_the_first_rule_that_matches_a_topic_counts():
    special, other, rest = Preference(("c",)), Preference(("b",)), Preference(("a",))
    wish = Placement(rest, (TopicRule("orders-eu", special), TopicRule("orders-*", other)))
    assert [wish.of(t) for t in ("orders-eu", "orders-us", "payments")] == [special, other, rest]
