"""What is read of the cluster before a broker is held, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.model.fault_tolerance import fault_tolerance_query
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Harm
from testkit.values.builders import after, cluster, partition
from testkit.values.quarantine_inputs import (
    GOOD,
    NOW,
    agent,
    disk,
    opted_in,
    ordered,
)

ORDINARY = partition(replicas=(2, 3, 1))


def test_margins_are_read_where_disk_is_slow_or_broker_held() -> None:
    seen, plain = cluster(ORDINARY, partition("quiet", replicas=(2, 3))), Policy(name="main", mode=Mode.ENFORCE)
    for policy in (opted_in(), plain):
        asked = fault_tolerance_query(seen, (disk(), agent()), {}, policy)
        assert asked is not None, "whether demotion helps depends on it, with an agent or without"
        assert (asked.topics, asked.peers) == (({"orders"}, {2, 3}) if policy is not plain else (set(), set()))
        assert asked.followed == {1: {ORDINARY.name: 2}}
    assert fault_tolerance_query(seen, (disk(1, GOOD), agent()), {}, opted_in()) is None, "its disk is well"
    frozen = replace(disk(1, GOOD), harm=Harm(2.0, 0.5, NOW, frozen_seconds=1.0))
    asked = fault_tolerance_query(seen, (frozen, agent()), {}, opted_in())
    assert asked is not None
    assert (asked.peers, asked.followed) == ({2, 3}, {}), "it may not answer, and what it lags does not matter"
    standing = fault_tolerance_query(seen, (), {1: ordered(held_at=after(10))}, opted_in())
    assert standing is not None
    assert not standing.followed, "who is held trails, and is not asked"
    assert standing.peers == {2, 3}
    both = fault_tolerance_query(
        seen, (disk(), agent(), disk(2), agent(2)), {1: ordered(held_at=after(10))}, opted_in()
    )
    assert both is not None
    assert both.peers == {2, 3}, "a slow broker next to the held one may be lost, too"
