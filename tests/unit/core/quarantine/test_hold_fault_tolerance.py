"""A broker is held only where its partitions and the controller quorum can do without it."""

from __future__ import annotations

import pytest

from bellwether.core.model.cluster import Cluster
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.reasons import Reason
from testkit.values.builders import cluster, partition
from testkit.values.quarantine_inputs import CONTROLLERS, SLOW, opted_in, scene, weighed

ORDINARY = partition(replicas=(2, 3, 1))


def refused(*args: object) -> Reason | None:
    """Why broker 1 is not held."""
    found = weighed(*args)  # type: ignore[arg-type]
    return None if found.orders else found.not_held[1].reason


@pytest.mark.parametrize(
    ("seen", "least", "spare", "reason"),
    [
        pytest.param(cluster(ORDINARY), 1, 1, None, id="two are left, one needed, one to spare"),
        pytest.param(cluster(ORDINARY), 2, 1, Reason.NO_FAULT_TOLERANCE, id="two are left and needed"),
        pytest.param(cluster(ORDINARY), 2, 0, None, id="none to spare is the policy's choice"),
        pytest.param(cluster(ORDINARY), 3, 0, Reason.NO_FAULT_TOLERANCE, id="never below the least"),
        pytest.param(
            cluster(partition(replicas=(2, 3, 1), isr=(2, 1))), 1, 1, Reason.NO_FAULT_TOLERANCE, id="one has left"
        ),
        pytest.param(
            cluster(ORDINARY, partition(index=1, replicas=(2, 1))), 1, 1, Reason.NO_FAULT_TOLERANCE, id="one of many"
        ),
        pytest.param(
            cluster(ORDINARY, partition(index=1, replicas=(2, 3, 1), isr=(2,))), 1, 1, Reason.NO_FAULT_TOLERANCE,
            id="a partition whose ISR it is not in counts as well",
        ),
        pytest.param(cluster(ORDINARY, partition(index=1, replicas=(2, 3))), 2, 0, None, id="others' are no matter"),
        pytest.param(
            cluster(partition(replicas=(2, 3, 1, 4), adding=(4,)), brokers=4), 1, 1, Reason.NO_FAULT_TOLERANCE,
            id="moving",
        ),
        pytest.param(
            cluster(ORDINARY, partition("new", replicas=(2, 3, 1))), 1, 0, Reason.NO_EVIDENCE, id="new"
        ),
    ],
)  # fmt: skip
def test_every_partition_that_it_holds_keeps_enough_isr_members(
    seen: Cluster, least: int, spare: int, reason: Reason | None
):
    facts = scene(seen, margins=FaultTolerance({"orders": least}, CONTROLLERS, trailing=SLOW))
    assert refused(facts, opted_in(spare_isr_members=spare)) is reason


@pytest.mark.parametrize(
    ("voters", "current", "reason"),
    [
        pytest.param([101], [101], None, id="no voter itself"),
        pytest.param([1, 2, 3], [1, 2, 3], None, id="one of three"),
        pytest.param([1, 2, 3], [1, 2], Reason.NO_FAULT_TOLERANCE, id="one of three, another behind"),
        pytest.param([1, 2, 3], [2, 3], None, id="itself behind already"),
        pytest.param([1], [1], Reason.NO_FAULT_TOLERANCE, id="the only one"),
    ],
)
def test_the_quorum_keeps_its_majority(voters: list[int], current: list[int], reason: Reason | None):
    quorum = Quorum(frozenset(voters), frozenset(current))
    facts = scene(margins=FaultTolerance({"orders": 1}, quorum, trailing=SLOW))
    assert refused(facts) is reason
    spared = Reason.NO_FAULT_TOLERANCE if quorum.shortage_without(1, spare=1) else reason
    assert refused(facts, opted_in(spare_isr_members=1)) is spared, "as many voters to spare as ISR members"


def test_the_active_controller_is_not_held():
    five = frozenset(range(1, 6))
    for active, why in ((1, Reason.NO_FAULT_TOLERANCE), (2, None)):
        margins = FaultTolerance({"orders": 1}, Quorum(five, five, active), trailing=SLOW)
        assert refused(scene(margins=margins)) is why
