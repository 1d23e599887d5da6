"""Quarantine, whatever happens in whatever order: never two at once, never where a loss would hurt, never for good.

Wardens and operator are the real ones; the watcher knows the truth of disks, processes and ISRs, and asks neither.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.policy import Policy
from bellwether.testing.memory_cluster import MemoryCluster
from testkit.quarantinesites import LIMIT_SECONDS, LOSS_SECONDS, LOST_SECONDS, QuarantineSite, strict

Event = tuple[str, int, int]
KINDS = (
    "slow", "slow", "slow", "fast", "kill", "mend", "shrink", "join", "api away", "api back", "kill operator",
    "take over", "kill warden", "post warden", "min isr", "wait", "wait", "wait",
)  # fmt: skip


@st.composite
def clusters(draw: st.DrawFn) -> MemoryCluster:
    """Four to six brokers whose topics can, or cannot, do without one of them."""
    made = MemoryCluster(draw(st.integers(4, 6)))
    for number in range(draw(st.integers(1, 3))):
        made.create_topic(
            f"topic-{number}", draw(st.integers(1, 4)), draw(st.integers(2, 4)), min_isr=draw(st.integers(1, 2))
        )
    return made


@st.composite
def scripts(draw: st.DrawFn) -> list[Event]:
    """What befalls a site, with the seconds that pass after each event."""
    event = st.tuples(st.sampled_from(KINDS), st.integers(1, 6), st.integers(0, 25))
    return draw(st.lists(event, min_size=4, max_size=16))


def befall(ward: QuarantineSite, event: Event) -> None:
    """One event, and the time after it."""
    kind, number, seconds = event
    broker = sorted(ward.cluster.brokers)[number % len(ward.cluster.brokers)]
    partitions = ward.cluster.partitions()
    chosen = partitions[number % len(partitions)]
    follower = next((b for b in chosen.isr if b != chosen.leader), None)
    if kind == "slow":
        ward.slow.add(broker)
    elif kind == "fast":
        ward.slow.discard(broker)
    elif kind == "kill":
        ward.kill(broker)
    elif kind == "mend":
        ward.mend(broker)
    elif kind == "shrink" and follower is not None:
        ward.cluster.shrink_isr(chosen.name, follower)
    elif kind == "join":
        for b in sorted(set(ward.cluster.brokers) - ward.paused):
            if not ward.cluster.brokers[b].frozen:
                ward.cluster.catch_up(b)
    elif kind in ("api away", "api back"):
        ward.api = kind == "api back"
    elif kind == "kill operator":
        ward.kill_operator()
    elif kind == "take over" and ward.api:
        ward.take_over()
    elif kind == "kill warden":
        ward.kill_warden(broker)
    elif kind == "post warden":
        ward.post(broker)
    elif kind == "min isr":
        ward.cluster.configure_topic(chosen.topic, "min.insync.replicas", str(1 + number % 3))
    ward.seconds(seconds)


@given(clusters(), scripts(), st.integers(0, 1), st.sampled_from([(), (1, 2, 3), (1, 2, 3, 4, 5)]))
def test_whatever_happens_nobody_is_paused_two_at_once_or_against_the_arithmetic_or_for_good(
    cluster: MemoryCluster, script: list[Event], spare: int, voters: tuple[int, ...]
):
    ward = QuarantineSite(cluster, strict(spare), [v for v in voters if v in cluster.brokers])
    ward.seconds(3)
    for event in script:
        befall(ward, event)
        assert not ward.broken
    ward.slow.clear()
    ward.seconds(LOST_SECONDS)
    assert not ward.paused, "all disks are fast, and somebody is paused"
    assert not ward.broken


def quarantined(policy: Policy | None = None, brokers: int = 4) -> QuarantineSite:
    """A site in which broker 1 is paused, by all the rules."""
    cluster = MemoryCluster(brokers)
    cluster.create_topic("orders", 8, 3, min_isr=1)
    ward = QuarantineSite(cluster, policy)
    ward.seconds(3)
    ward.slow.add(1)
    ward.seconds(20)
    assert ward.paused == {1}
    return ward


def test_a_slow_broker_that_can_be_spared_is_paused_and_leaves_every_isr():
    ward = quarantined()
    ward.seconds(10)
    assert all(1 not in p.isr for p in ward.cluster.partitions())
    assert not ward.broken


@pytest.mark.parametrize(
    ("event", "within"),
    [
        pytest.param("fast", LOSS_SECONDS, id="recovery"),
        pytest.param("kill another", LOSS_SECONDS, id="another broker is lost"),
        pytest.param("shrink", LOSS_SECONDS, id="an ISR shrinks"),
        pytest.param("min isr", LOSS_SECONDS, id="somebody asks for more in-sync replicas"),
        pytest.param("kill warden", 0.5, id="the warden is killed"),
        pytest.param("kill operator", LOST_SECONDS, id="the operator is gone"),
        pytest.param("api away", LOST_SECONDS, id="the API is away"),
        pytest.param("nothing", LIMIT_SECONDS, id="the limit"),
    ],
)
def test_a_paused_broker_is_released(event: str, within: float):
    ward = quarantined()
    first = next(p for p in ward.cluster.partitions() if 1 in p.replicas)
    if event == "fast":
        ward.slow.discard(1)
    elif event == "kill another":
        ward.kill(2)
    elif event == "shrink":
        ward.cluster.shrink_isr(first.name, next(b for b in first.isr if b not in (1, first.leader)))
    elif event == "min isr":
        ward.cluster.configure_topic("orders", "min.insync.replicas", "2")
    elif event == "kill warden":
        ward.kill_warden(1)
    elif event == "kill operator":
        ward.kill_operator()
    elif event == "api away":
        ward.api = False
    ward.seconds(within)
    assert not ward.paused
    assert not ward.broken


def test_a_new_operator_goes_on_with_an_order_that_it_finds_and_ends_one_that_has_become_wrong():
    ward = quarantined()
    ward.kill_operator()
    ward.seconds(2)
    ward.take_over()
    ward.seconds(20)
    assert ward.paused == {1}
    ward.kill_operator()
    ward.slow.discard(1)
    ward.seconds(2)
    ward.take_over()
    ward.seconds(LOSS_SECONDS)
    assert not ward.paused
    assert not ward.broken


def test_of_two_slow_brokers_one_after_the_other_no_two_are_paused_at_once():
    ward = quarantined(brokers=6)
    ward.slow = {2}
    ward.seconds(60)
    assert ward.pauses >= 2, "the second got its turn"
    assert not ward.broken
