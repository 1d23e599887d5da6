"""Quarantine, whatever happens in whatever order: never two at once, never where a loss would hurt, never without end.

Agents and operator are the real ones; the watcher knows the truth of disks, processes and ISRs, and asks neither.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.quarantine.agent import AgentAction, AgentState, HoldOrder, OrderRead, ProcessState, step
from bellwether.core.settings.policy import Policy
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.quarantine_simulation import LIMIT_SECONDS, LOSS_SECONDS, LOST_SECONDS, QuarantineSite, strict
from testkit.values.builders import after

Event = tuple[str, int, int]
KINDS = (
    "slow", "slow", "slow", "fast", "kill", "repair", "shrink", "join", "api away", "api back", "kill operator",
    "take over", "kill quarantine agent", "post quarantine agent", "min isr", "wait", "wait", "wait",
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
    """What happens to a site, with the seconds that pass after each event."""
    event = st.tuples(st.sampled_from(KINDS), st.integers(1, 6), st.integers(0, 25))
    return draw(st.lists(event, min_size=4, max_size=16))


def befall(risk_summary: QuarantineSite, event: Event) -> None:
    """One event, and the time after it."""
    kind, number, seconds = event
    broker = sorted(risk_summary.cluster.brokers)[number % len(risk_summary.cluster.brokers)]
    partitions = risk_summary.cluster.partitions()
    chosen = partitions[number % len(partitions)]
    follower = next((b for b in chosen.isr if b != chosen.leader), None)
    if kind == "slow":
        risk_summary.slow.add(broker)
    elif kind == "fast":
        risk_summary.slow.discard(broker)
    elif kind == "kill":
        risk_summary.kill(broker)
    elif kind == "repair":
        risk_summary.mend(broker)
    elif kind == "shrink" and follower is not None:
        risk_summary.cluster.shrink_isr(chosen.name, follower)
    elif kind == "join":
        for b in sorted(set(risk_summary.cluster.brokers) - risk_summary.held):
            if not risk_summary.cluster.brokers[b].frozen:
                risk_summary.cluster.catch_up(b)
    elif kind in ("api away", "api back"):
        risk_summary.api = kind == "api back"
    elif kind == "kill operator":
        risk_summary.kill_operator()
    elif kind == "take over" and risk_summary.api:
        risk_summary.take_over()
    elif kind == "kill quarantine agent":
        risk_summary.kill_agent(broker)
    elif kind == "post quarantine agent":
        risk_summary.post(broker)
    elif kind == "min isr":
        risk_summary.cluster.settings[chosen.topic]["min.insync.replicas"] = str(1 + number % 3)
    risk_summary.seconds(seconds)


@given(clusters(), scripts(), st.integers(0, 1), st.sampled_from([(), (1, 2, 3), (1, 2, 3, 4, 5)]))
def test_holds_are_one_at_a_time_within_margins_and_end(
    cluster: MemoryCluster, script: list[Event], spare: int, voters: tuple[int, ...]
):
    risk_summary = QuarantineSite(cluster, strict(spare), [v for v in voters if v in cluster.brokers])
    risk_summary.seconds(3)
    for event in script:
        befall(risk_summary, event)
        assert not risk_summary.broken
    risk_summary.slow.clear()
    risk_summary.seconds(LOST_SECONDS)
    assert not risk_summary.held, "all disks are fast, and a broker is held"
    assert not risk_summary.broken


@st.composite
def forged_reads(draw: st.DrawFn) -> list[OrderRead | None]:
    """What an agent may read, one a second, when any account writes its order."""
    order = st.builds(
        HoldOrder,
        epoch=st.integers(0, 2),
        number=st.integers(0, 3),
        renewal=st.integers(0, 10**6).map(after),
        limit_seconds=st.floats(0, 1e9),
        duration_seconds=st.floats(0, 1e9),
    )
    given_orders = [OrderRead(one) for one in draw(st.lists(order, min_size=1, max_size=2))]
    read = st.sampled_from([None, OrderRead(), *given_orders, *given_orders])
    runs = draw(st.lists(st.tuples(read, st.integers(1, 40), st.booleans()), min_size=3, max_size=12))
    begun = (OrderRead(), 1, False), (given_orders[0], 3, True)
    return [
        _renewed(one, second) if renewing else one
        for one, seconds, renewing in (*begun, *runs)
        for second in range(seconds)
    ]


def _renewed(read: OrderRead | None, second: int) -> OrderRead | None:
    if read is None or read.command is None:
        return read
    return replace(read, command=replace(read.command, renewal=read.command.renewal + timedelta(seconds=second)))


@given(forged_reads(), st.integers(1, 60))
def test_whatever_order_says_no_hold_outlasts_ceiling_or_its_renewals(reads: list[OrderRead | None], ceiling: int):
    state, process, held_at, changed_at, last = AgentState(), ProcessState.RUNNING, 0, 0, None
    for at, read in enumerate(reads):
        if read is not None and read.command is not None and read.command != last:
            changed_at, last = at, read.command
        state, act = step(state, read, process, float(at), ceiling)
        if act is AgentAction.HOLD:
            process, held_at = ProcessState.STOPPED, at
        elif act is AgentAction.RELEASE:
            process = ProcessState.RUNNING
        if process is ProcessState.STOPPED:
            assert at - held_at < ceiling
            assert at - changed_at <= EXPIRES_AFTER_SECONDS


def quarantined(policy: Policy | None = None, brokers: int = 4) -> QuarantineSite:
    """A site in which broker 1 is held, by all the rules."""
    cluster = MemoryCluster(brokers)
    cluster.create_topic("orders", 8, 3, min_isr=1)
    risk_summary = QuarantineSite(cluster, policy)
    risk_summary.seconds(3)
    risk_summary.slow.add(1)
    risk_summary.seconds(20)
    assert risk_summary.held == {1}
    return risk_summary


def test_a_slow_broker_that_can_be_spared_is_held_and_leaves_every_isr():
    risk_summary = quarantined()
    risk_summary.seconds(10)
    assert all(1 not in p.isr for p in risk_summary.cluster.partitions())
    assert not risk_summary.broken


@pytest.mark.parametrize(
    ("event", "within"),
    [
        pytest.param("fast", strict().promotion.stabilization_seconds + LOSS_SECONDS, id="recovery"),
        pytest.param("kill another", LOSS_SECONDS, id="another broker is lost"),
        pytest.param("shrink", LOSS_SECONDS, id="an ISR shrinks"),
        pytest.param("min isr", LOSS_SECONDS, id="a person asks for more in-sync replicas"),
        pytest.param("kill quarantine agent", 0.5, id="the quarantine agent is killed"),
        pytest.param("kill operator", LOST_SECONDS, id="the operator is gone"),
        pytest.param("api away", LOST_SECONDS, id="the API is away"),
        pytest.param("nothing", LIMIT_SECONDS, id="the limit"),
    ],
)
def test_a_held_broker_is_released(event: str, within: float):
    risk_summary = quarantined()
    first = next(p for p in risk_summary.cluster.partitions() if 1 in p.replicas)
    if event == "fast":
        risk_summary.slow.discard(1)
    elif event == "kill another":
        risk_summary.kill(2)
    elif event == "shrink":
        risk_summary.cluster.shrink_isr(first.name, next(b for b in first.isr if b not in (1, first.leader)))
    elif event == "min isr":
        risk_summary.cluster.settings["orders"]["min.insync.replicas"] = "2"
    elif event == "kill quarantine agent":
        risk_summary.kill_agent(1)
    elif event == "kill operator":
        risk_summary.kill_operator()
    elif event == "api away":
        risk_summary.api = False
    risk_summary.seconds(within)
    assert not risk_summary.held
    assert not risk_summary.broken


def test_a_new_operator_goes_on_with_an_order_that_it_finds_and_ends_one_that_has_become_wrong():
    risk_summary = quarantined()
    risk_summary.kill_operator()
    risk_summary.seconds(2)
    risk_summary.take_over()
    risk_summary.seconds(20)
    assert risk_summary.held == {1}
    risk_summary.kill_operator()
    risk_summary.slow.discard(1)
    risk_summary.seconds(2)
    risk_summary.take_over()
    risk_summary.seconds(strict().promotion.stabilization_seconds + LOSS_SECONDS)
    assert not risk_summary.held
    assert not risk_summary.broken


def test_of_two_slow_brokers_one_after_the_other_no_two_are_held_at_once():
    risk_summary = quarantined(brokers=6)
    risk_summary.slow = {2}
    risk_summary.seconds(60)
    assert risk_summary.holds >= 2, "the second got its turn"
    assert not risk_summary.broken
