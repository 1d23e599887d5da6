"""The sick broker is frozen and first in bootstrap: it is demoted within its session, with the limits of production."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bellwether.adapters.kafka.connection.broker_pool import Limits
from bellwether.core.signals import OverrideState
from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject
from testkit.kafka.kafka_site import KafkaSite
from testkit.simulation.operators import Operator

pytestmark = pytest.mark.kafka

SESSION_SECONDS = 9.0


def test_frozen_broker_first_in_bootstrap_is_demoted_within_its_session(
    whole: KafkaCluster, site: KafkaSite, others: KafkaSubject, begin: Callable[..., Operator]
) -> None:
    others.create(*[(2, 1, 3), (2, 3, 4), (1, 2, 4)] * 5)
    baseline = site.orders()
    site.bootstrap = (whole.broker(2).internal, whole.broker(3).internal)
    site.limits = Limits()
    limit = site.limits.read_seconds + 2 * site.limits.mutation_seconds
    # On a machine that is too busy the session may end first, and then it is Kafka that moves the leaders: once more.
    for _ in range(4):
        operator = begin()
        site.signals.override(2, OverrideState.DEMOTED)
        whole.broker(2).pause()
        started = time.monotonic()
        longest = 0.0
        while (seen := site.seen()).leaders()[2] > 0 and time.monotonic() - started < SESSION_SECONDS:
            began = time.monotonic()
            operator.reconcile()
            longest = max(longest, time.monotonic() - began)
        # Neither fenced nor out of an ISR: it is our election that has moved the leaders.
        ours = longest < limit and 2 in seen.live and all(2 in p.isr and p.replicas[-1] == 2 for p in seen.held_by(2))
        whole.mend()
        site.signals.lift(2)
        site.eventually(lambda c: all(len(p.isr) == len(p.replicas) for p in c.partitions))
        operator.settle(seconds=0.2)
        site.until_ordered(baseline)
        if ours:
            break
    assert longest < limit, "a turn ends within the limits of its requests"
    assert ours
    assert seen.leaders()[2] == 0
