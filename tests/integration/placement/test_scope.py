"""A policy's scope on real brokers: topics out of it keep orders and leaders, in a demotion by hand and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bellwether.core.model.cluster import TopicPartition
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


def led(site: Site, topic: str) -> int:
    return sum(p.leader == 1 for name, p in site.partitions().items() if name.topic == topic)


def test_demotion_moves_what_is_in_scope_and_leaves_rest(policy_site: Site) -> None:
    site = policy_site
    site.topics({"orders": 12, "private": 12})
    before = site.orders()
    outside: dict[TopicPartition, tuple[int, ...]] = {n: o for n, o in before.items() if n.topic == "private"}
    kept = led(site, "private")
    assert kept
    site.policy(scope={"excludedTopics": ["priv*"]})
    site.operator()
    site.until_reported()
    site.demote(1)
    site.until(lambda: led(site, "orders") == 0, 60, "topics in scope leave the broker", site.partitions)
    blocked = [{"reason": "OutOfScope", "count": kept}]
    site.until(
        lambda: [{k: b[k] for k in ("reason", "count")} for b in site.status().get("blockedByReason", [])] == blocked,
        30,
        "status counts what stays",
        site.status,
    )
    assert {n: o for n, o in site.orders().items() if n.topic == "private"} == outside
    assert led(site, "private") == kept

    # The topic comes into scope: its leaders leave as well. It leaves the scope again: they go back as any others do.
    site.change(scope=None)
    site.until(lambda: led(site, "private") == 0, 60, "they leave", site.partitions)
    site.change(scope={"excludedTopics": ["priv*"]})
    site.lift_and_wait(1, before)
    assert led(site, "private") == kept
