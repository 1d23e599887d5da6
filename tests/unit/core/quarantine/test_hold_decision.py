"""Whose process is held: when an order is given, when not, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum, fault_tolerance_query
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, RELEASE_AFTER, RENEW_SECONDS, QuarantineOrder
from bellwether.core.quarantine.hold_decision import ENDINGS, HOLD_TIMEOUT_SECONDS
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import STALLED_SECONDS
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Override, OverrideState, Signal
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, drain, partition, verdicts
from testkit.values.quarantine_inputs import (
    BAD,
    CONTROLLERS,
    GOOD,
    NOW,
    SILENT,
    SLOW,
    agent,
    disk,
    held_in,
    opted_in,
    ordered,
    scene,
    weighed,
)

ORDINARY = partition(replicas=(2, 3, 1))
AGENT = Reason.AGENT_UNAVAILABLE


def refused(*args: object, **more: object) -> Reason | None:
    """Why broker 1 is not held."""
    found = weighed(*args, **more)  # type: ignore[arg-type]
    assert bool(found.orders) != bool(found.not_held), "either an order or a reason"
    return found.not_held[1].reason if found.not_held else None


def held(**more: object) -> QuarantineOrder:
    """An order that its quarantine agent obeys."""
    return ordered(held_at=after(10), **more)  # type: ignore[arg-type]


def ending(*signals: Signal, order: QuarantineOrder | None = None, **more: object) -> QuarantineOrder:
    """A standing order after the next reconcile."""
    about = order or held()
    words = signals or (disk(), agent(1, BAD, 1))
    policy = more.pop("policy", None) or opted_in()
    judged, left = more.pop("judged", None), more.pop("demoted", (1,))
    more = {"known_good": {1: KnownGood(300.0)}, **more}
    known = {name: more.pop(name) for name in ("pods", "overrides", "flaps", "known_good") if name in more}
    facts = scene(more.pop("seen", None), *words, orders=[about], **more)  # type: ignore[arg-type]
    facts = replace(facts, **known)  # type: ignore[arg-type]
    now = weighed(facts, policy, judged, left).orders[1]  # type: ignore[arg-type]
    assert now.active or now.reason in ENDINGS
    return now


def ended(*signals: Signal, **more: object) -> str | None:
    """Why a standing order ends; None where it goes on."""
    now = ending(*signals, **more)  # type: ignore[arg-type]
    return None if now.active else now.reason


def test_a_demoted_broker_that_acks_all_waits_for_is_ordered_to_be_held_for_a_limited_time():
    found = weighed(policy=opted_in(limit_seconds=120))
    order = found.orders[1]
    assert (order.epoch, order.number, order.reason) == (1, 1, Reason.QUARANTINE_PENDING)
    assert (order.since, order.until, order.renewed_at) == (NOW, NOW + timedelta(seconds=120), NOW)
    assert not found.not_held


def test_order_has_number_unused_by_orders_and_agents():
    before = ordered(2, 7, ended_at=after(0), reason=Reason.QUARANTINE_ENDED, renewed_at=after(0))
    facts = scene(None, disk(), agent(1, GOOD, 4), agent(2, GOOD, 7), orders=[before])
    assert weighed(facts).orders[1].number == 8
    reported = (disk(), agent(1, GOOD, 9), replace(agent(2, GOOD), value=None))
    assert weighed(scene(None, *reported, orders=[before])).orders[1].number == 10


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(Policy(name="main", mode=Mode.ENFORCE), id="off by default"),
        pytest.param(replace(opted_in(), mode=Mode.OBSERVE), id="observing"),
        pytest.param(replace(opted_in(), suspend=True), id="suspended"),
    ],
)
def test_a_policy_without_quarantine_holds_and_reports_nothing(policy: Policy):
    found = weighed(policy=policy)
    assert not found.orders
    assert not found.not_held


def test_only_slow_broker_to_be_held_or_awaited_is_considered():
    assert not weighed(demoted=()).orders, "neither demoted nor to be held"
    leading = scene(cluster(partition(replicas=(1, 2, 3))))
    assert weighed(leading, demoted=(), to_hold=(1,)).orders[1].active, "a controlled shutdown moves what it leads"
    well = {b: replace(v, slow=None) for b, v in held_in(cluster(ORDINARY)).items()}
    assert not weighed(judged=well).not_held, "not slow"
    alone = cluster(partition(replicas=(2, 3, 1), isr=(2, 3)))
    assert not weighed(scene(alone)).orders, "out of the ISR already"


def test_broker_down_with_endless_append_is_held_fenced_or_not():
    stalled = replace(disk(), latency_seconds=STALLED_SECONDS)
    fenced = cluster(partition(replicas=(2, 3, 1), isr=(2, 3)), fenced=[1])
    unlisted = replace(fenced, brokers={2: fenced.brokers[2], 3: fenced.brokers[3]})  # before KIP-1073
    for seen in (fenced, unlisted, cluster(ORDINARY)):
        facts, down = scene(seen, stalled, agent()), verdicts(seen, down=[1])
        assert weighed(facts, judged=down, demoted=()).orders[1].active
        assert fault_tolerance_query(seen, (stalled,), {}, opted_in()) is not None
        for other, judged in ((scene(seen), down), (facts, verdicts(seen))):
            assert not weighed(other, judged=judged, demoted=()).orders, "slow, not stalled; or not down"
        for override in (drain(), Override(1, OverrideState.PROMOTED, "let it lead")):
            assert not weighed(replace(facts, overrides=(override,)), judged=down, demoted=()).orders


@pytest.mark.parametrize(
    ("words", "reason", "case"),
    [
        pytest.param([disk()], AGENT, "no quarantine agent reports", id="no agent next to it"),
        pytest.param([disk(), agent(age=16.0)], AGENT, "no quarantine agent reports", id="an agent that is silent"),
        pytest.param([disk(), agent(age=None)], AGENT, "no quarantine agent reports", id="an agent never seen"),
        pytest.param([disk(), agent(1, SILENT)], AGENT, "cannot hold it", id="an agent that may not signal it"),
        pytest.param([agent(2), agent()], Reason.NO_EVIDENCE, "no storage probe", id="no probe on its disk"),
        pytest.param([disk(age=999.0), agent()], Reason.NO_EVIDENCE, "no storage probe", id="a silent prober"),
        pytest.param([disk(1, GOOD), agent()], Reason.QUARANTINE_ENDED, "fast again", id="a fast disk"),
        pytest.param(
            [disk(), agent(), agent(3, BAD, 9)],
            Reason.ANOTHER_BROKER_UNHEALTHY,
            "only one broker is held at a time",
            id="another is held",
        ),
    ],
)
def test_missing_signals_hold_no_broker(words: list[Signal], reason: Reason, case: str):
    assert refused(scene(None, *words)) is reason
    assert case in weighed(scene(None, *words)).not_held[1].message


@pytest.mark.parametrize(
    "margins",
    [
        pytest.param(None, id="not read"),
        pytest.param(FaultTolerance({"orders": 1}, None), id="no quorum known"),
        pytest.param(FaultTolerance({"orders": 1}, CONTROLLERS, problem="grant the ACL"), id="refused"),
    ],
)
def test_unknown_margins_hold_no_broker_and_end_a_hold(margins: FaultTolerance | None):
    assert refused(scene(margins=margins)) is Reason.NO_EVIDENCE
    assert ended(margins=margins) == Reason.NO_EVIDENCE


@pytest.mark.parametrize("standing", ["sick", "down", "suspect"])
def test_no_hold_while_another_broker_is_not_well(standing: str):
    sick = {"sick": [1, 3]} if standing == "sick" else {standing: [3]}
    judged = held_in(cluster(ORDINARY), **sick)
    assert refused(judged=judged) is Reason.ANOTHER_BROKER_UNHEALTHY
    assert ended(judged=judged) == Reason.ANOTHER_BROKER_UNHEALTHY


def test_no_hold_while_another_broker_is_gone_or_silent():
    four = cluster(ORDINARY, brokers=4, fenced=[4])
    assert refused(scene(four)) is Reason.ANOTHER_BROKER_UNHEALTHY
    assert ended(seen=four) == Reason.ANOTHER_BROKER_UNHEALTHY
    silent = FaultTolerance({"orders": 1}, CONTROLLERS, silent=frozenset({3}))
    assert refused(scene(margins=silent)) is Reason.ANOTHER_BROKER_UNHEALTHY
    assert ended(margins=silent) == Reason.ANOTHER_BROKER_UNHEALTHY


def test_no_hold_while_another_broker_is_about_to_be_restarted():
    going = {1: Pod("kafka-1"), 3: Pod("kafka-3", leaving=True)}
    assert refused(replace(scene(), pods=going)) is Reason.ANOTHER_BROKER_UNHEALTHY
    assert ended(pods=going) == Reason.ANOTHER_BROKER_UNHEALTHY
    drained = (drain(3),)
    assert refused(replace(scene(), overrides=drained)) is Reason.ANOTHER_BROKER_UNHEALTHY
    assert ended(overrides=drained) == Reason.ANOTHER_BROKER_UNHEALTHY


def test_broker_about_to_be_stopped_is_released_and_not_held():
    leaving = {1: Pod("kafka-1", ready=False, leaving=True)}
    assert refused(replace(scene(), pods=leaving)) is Reason.RESTARTING
    assert ended(pods=leaving) == Reason.QUARANTINE_ENDED
    drained = (drain(),)
    assert refused(replace(scene(), overrides=drained)) is Reason.IN_MAINTENANCE
    assert ended(overrides=drained) == Reason.QUARANTINE_ENDED
    order = weighed(replace(scene(None, disk(), agent(1, BAD, 1), orders=[held()]), overrides=drained)).orders[1]
    assert order.message.startswith(f"{drained[0].reason}: a held process"), "it says what stops the broker"
    assert ended(pods={1: Pod("kafka-1", ready=False)}) is None, "a held broker answers no readiness probe"


def test_slow_disk_without_known_trailing_is_no_reason_to_hold():
    fast = FaultTolerance({"orders": 1}, CONTROLLERS, keeping_up=SLOW)
    assert refused(scene(margins=fast)) is Reason.NOT_BLOCKING_ACKS
    assert refused(scene(margins=FaultTolerance({"orders": 1}, CONTROLLERS))) is Reason.NO_EVIDENCE
    assert ended(margins=fast) is None, "a held broker is not asked again"


def test_stalled_disk_delays_acks_all_whatever_log_ends_say():
    stalled = replace(disk(), latency_seconds=STALLED_SECONDS)
    quiet = FaultTolerance({"orders": 1}, CONTROLLERS, keeping_up=SLOW)
    assert refused(scene(None, stalled, agent(), margins=quiet)) is None
    slow = replace(disk(), latency_seconds=STALLED_SECONDS - 0.1)
    assert refused(scene(None, slow, agent(), margins=quiet)) is Reason.NOT_BLOCKING_ACKS


def test_broker_is_held_until_disk_is_fast_longer_each_time():
    words = [disk(1, GOOD), agent(1, BAD, 1)]
    assert ended(*words, known_good={1: KnownGood(59.0)}) is None
    assert ended(*words, flaps={1: FlapCounter(1, NOW)}) == Reason.QUARANTINE_ENDED
    assert ended(*words, flaps={1: FlapCounter(2, NOW)}, policy=opted_in()) == Reason.QUARANTINE_ENDED, "fast for 300 s"
    lately = {1: KnownGood(119.0)}
    assert ended(*words, flaps={1: FlapCounter(2, NOW)}, known_good=lately) is None
    assert ended(*words, flaps={1: FlapCounter(1, NOW)}, known_good=lately) == Reason.QUARANTINE_ENDED


@pytest.mark.parametrize("unheard", [{"disk"}, {"agent"}, {"disk", "agent"}])
def test_new_process_without_ages_of_signals_continues_order(unheard: set[str]):
    words = {"disk": disk(), "agent": agent(1, BAD, 1)}
    said = [replace(s, age_seconds=None) if name in unheard else s for name, s in words.items()]
    assert ended(*said) is None


def test_fast_time_of_held_disk_ignores_probers_clock():
    assert ended(disk(1, GOOD), agent(1, BAD, 1), known_good={}) is None
    found = weighed(scene(None, disk(1, GOOD), agent(1, BAD, 1), orders=[held()]))
    assert found.known_good[1].read_at == NOW


def test_frozen_broker_is_held_for_stabilization_time():
    words = [disk(1, GOOD), agent(1, BAD, 1)]
    lately, long = (replace(held(since=NOW - timedelta(seconds=s)), freezes=True) for s in (59, 60))
    assert ended(*words, order=lately) is None
    over = "held for 60 s (spec.promotion.stabilizationSeconds); its start shows"
    assert ending(*words, order=long).message.startswith(over)
    assert ended(agent(1, BAD, 1), order=lately) is None, "no storage probe is needed for it"
    assert ended(disk(), agent(1, BAD, 1), order=long) is None, "its disk is slow as well"


def test_an_order_for_a_broker_that_freezes_says_so():
    judged = verdicts(cluster(ORDINARY), sick=[1])
    judged[1] = replace(judged[1], reason=Reason.FREEZING)
    order = weighed(scene(None, agent()), judged=judged, demoted=(), to_hold=(1,)).orders[1]
    assert order.freezes
    assert_wording(order.message)


def test_held_broker_out_of_every_isr_is_reported_once():
    assert_wording(ending(seen=cluster(ORDINARY)).message)
    assert "out of every ISR" in ending(seen=cluster(partition(replicas=(2, 3, 1), isr=(2, 3)))).message


def test_an_order_is_renewed_while_nothing_speaks_against_it():
    late = replace(obeyed := ending(), renewed_at=NOW - timedelta(seconds=RENEW_SECONDS))
    facts = scene(None, disk(), agent(1, BAD, 1), orders=[late])
    assert weighed(facts).orders[1] == replace(late, renewed_at=NOW)
    lately = replace(obeyed, renewed_at=NOW - timedelta(seconds=RENEW_SECONDS - 1))
    assert weighed(replace(facts, quarantine_orders={1: lately})).orders[1] == lately, "no write without need"


def test_a_broker_is_quarantined_once_its_agent_reports_it():
    facts = scene(None, disk(), agent(1, BAD, 1), orders=[ordered(since=NOW)])
    order = weighed(facts).orders[1]
    assert (order.held_at, order.reason) == (NOW, Reason.BROKER_HELD)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([disk(), agent(1, BAD, 1)], id="all as it was"),
        pytest.param([disk(1, GOOD), disk(1, BAD), agent(1, BAD, 1)], id="one of two disks still slow"),
        pytest.param([disk(), agent(1, BAD, 1, age=15.0)], id="the quarantine agent reported just in time"),
    ],
)
def test_quarantine_continues_while_agent_obeys_and_disk_is_slow(words: list[Signal]):
    assert ended(*words) is None


@pytest.mark.parametrize(
    ("words", "reason", "case"),
    [
        pytest.param([disk(1, GOOD), agent(1, BAD, 1)], Reason.QUARANTINE_ENDED, "fast again", id="recovered"),
        pytest.param(
            [disk(1, SILENT), agent(1, BAD, 1)], Reason.NO_EVIDENCE, "no storage probe", id="the prober does not know"
        ),
        pytest.param(
            [disk(age=999.0), agent(1, BAD, 1)], Reason.NO_EVIDENCE, "no storage probe", id="the prober is silent"
        ),
        pytest.param([disk()], AGENT, "does not report any more", id="the agent is gone"),
        pytest.param([disk(), agent(1, BAD, 1, age=16.0)], AGENT, "does not report any more", id="the agent is silent"),
        pytest.param([disk(), agent(1, SILENT, 1)], AGENT, "cannot hold it", id="the agent lost its right"),
        pytest.param([disk(), agent(1, GOOD, 1)], AGENT, "has released it", id="the agent released it"),
        pytest.param([disk(), agent(1, GOOD, 0)], AGENT, "has not held it", id="the agent has forgotten it"),
        pytest.param([disk(), agent(1, BAD, 2)], AGENT, "has not held it", id="the agent names another order"),
    ],
)
def test_words_end_a_quarantine(words: list[Signal], reason: Reason, case: str):
    assert ended(*words) == reason
    assert case in ending(*words).message


def test_quarantine_ends_at_limit_and_when_clock_goes_back():
    assert ended(order=held(until=NOW)) == Reason.QUARANTINE_LIMIT
    assert ended(order=held(until=NOW + timedelta(seconds=1))) is None
    assert ended(order=held(since=NOW + timedelta(seconds=1))) == Reason.QUARANTINE_LIMIT


def test_limit_that_is_lowered_ends_quarantine_that_was_given_longer():
    long = held(since=NOW - timedelta(seconds=59), until=NOW + timedelta(days=3650))
    assert ended(order=long, policy=opted_in(limit_seconds=60)) is None
    over = replace(long, since=NOW - timedelta(seconds=60))
    assert ended(order=over, policy=opted_in(limit_seconds=60)) == Reason.QUARANTINE_LIMIT


def test_an_override_or_a_changed_policy_ends_quarantine():
    assert ended(demoted=()) is None, "it need not be demoted"
    leads = Override(1, OverrideState.PROMOTED, "let it lead")
    assert ended(overrides=(leads,)) == Reason.QUARANTINE_ENDED
    for policy in (Policy(name="main", mode=Mode.ENFORCE), replace(opted_in(), suspend=True)):
        assert ended(policy=policy) == Reason.QUARANTINE_ENDED
        assert "quarantine is off" in ending(policy=policy).message


def test_quarantine_ends_on_any_further_loss_in_isr_or_quorum():
    shrunk = cluster(partition(replicas=(2, 3, 1), isr=(2,)))
    assert ended(seen=shrunk, margins=FaultTolerance({"orders": 2}, CONTROLLERS)) == Reason.NO_FAULT_TOLERANCE
    raised = FaultTolerance({"orders": 3}, CONTROLLERS)
    assert ended(margins=raised) == Reason.NO_FAULT_TOLERANCE, "min.insync.replicas was raised"
    voters = Quorum(frozenset(range(1, 6)), frozenset({2, 3}))
    assert ended(margins=FaultTolerance({"orders": 1}, voters)) == Reason.NO_FAULT_TOLERANCE


def test_an_order_that_is_not_obeyed_is_withdrawn():
    waiting = [disk(), agent(1, GOOD, 0)]
    late = ordered(since=NOW - timedelta(seconds=HOLD_TIMEOUT_SECONDS + 1))
    assert ended(*waiting, order=ordered(since=NOW - timedelta(seconds=HOLD_TIMEOUT_SECONDS))) is None
    assert ended(*waiting, order=late) == Reason.AGENT_UNAVAILABLE


def two_slow(*words: Signal, order: QuarantineOrder) -> Reason | None:
    """Broker 2 is slow; broker 1, which was ordered before, is well by now. Why broker 2 is not held."""
    facts = scene(cluster(partition(replicas=(3, 4, 1, 2)), brokers=4), *words, orders=[order])
    judged = held_in(facts.cluster, slow=2)
    found = weighed(facts, judged=judged, demoted=(1, 2))
    assert sum(c.active for c in found.orders.values()) <= 1
    return found.not_held[2].reason if 2 in found.not_held else None


def test_next_broker_is_held_only_once_former_surely_runs():
    both = [disk(1), disk(2), agent(2)]
    assert two_slow(*both, agent(1, BAD, 1), order=held()) is Reason.ANOTHER_BROKER_UNHEALTHY
    gone = held(ended_at=NOW, reason=Reason.AGENT_UNAVAILABLE, renewed_at=NOW)
    assert two_slow(*both, order=gone) is Reason.ANOTHER_BROKER_UNHEALTHY, "nothing shows that it runs"
    assert two_slow(*both, agent(1, BAD, 1), order=gone) is Reason.ANOTHER_BROKER_UNHEALTHY, "it is held still"
    forgotten = two_slow(*both, agent(1, GOOD, 0), order=gone)
    assert forgotten is Reason.ANOTHER_BROKER_UNHEALTHY, "its quarantine agent has not seen the order"
    assert two_slow(*both, agent(1, GOOD, 1), order=gone) is None, "its quarantine agent has released it"
    long_ago = held(ended_at=NOW, reason=Reason.AGENT_UNAVAILABLE, renewed_at=NOW - RELEASE_AFTER)
    assert two_slow(*both, order=long_ago) is None, "its order has run out wherever it is"
    assert timedelta(seconds=EXPIRES_AFTER_SECONDS) < RELEASE_AFTER


def test_of_two_that_are_sick_neither_is_held():
    facts = scene(cluster(partition(replicas=(3, 4, 5, 1, 2)), brokers=5), disk(1), disk(2), agent(1), agent(2))
    judged = held_in(facts.cluster, sick=[1, 2])
    judged[2] = replace(judged[2], slow=Reason.STORAGE_SLOW)
    found = weighed(facts, judged=judged, demoted=(1, 2))
    assert not found.orders
    assert {b: h.reason for b, h in found.not_held.items()} == dict.fromkeys((1, 2), Reason.ANOTHER_BROKER_UNHEALTHY)


def test_after_early_end_broker_is_spared_for_a_full_quarantine():
    words = [disk(), agent(1, GOOD, 1)]
    stopped = held(ended_at=NOW - timedelta(seconds=599), reason=Reason.QUARANTINE_LIMIT)
    found = weighed(scene(None, *words, orders=[stopped]))
    assert found.not_held[1].reason is Reason.QUARANTINE_PENDING
    assert_wording(found.not_held[1].message)
    assert found.orders == {1: stopped}, "it is remembered"
    rested = replace(stopped, ended_at=NOW - timedelta(seconds=600))
    assert weighed(scene(None, *words, orders=[rested])).orders[1].number == 2
    relapsed = replace(stopped, reason=Reason.QUARANTINE_ENDED)
    assert weighed(scene(None, *words, orders=[relapsed])).orders[1].number == 2, "a relapse is no reason to wait"


@pytest.mark.parametrize("policy", [opted_in(), Policy(name="main", mode=Mode.ENFORCE)], ids=["enabled", "off"])
def test_agents_report_held_brokers_whether_ordered_or_not(policy: Policy):
    assert weighed(scene(None, disk(), agent(1, BAD), agent(2), agent(3, BAD, age=15.1)), policy).held == {1}
