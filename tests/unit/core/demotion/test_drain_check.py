"""Whether a broker may be drained, and how a drain begins, holds and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from bellwether.core.demotion.decisions import LESS_SICK, Decisions, decide, decide_on_deletion
from bellwether.core.demotion.drain_check import StopCheck, stop_check
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.model.maintenance import Maintenance
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Demotion, Policy, Promotion, PromotionMode
from bellwether.core.signals import Override, OverrideState, Signal
from testkit.messages import assert_wording
from testkit.values.builders import (
    START,
    after,
    cluster,
    demoted,
    drain,
    override,
    partition,
    record,
    signal,
    snapshot,
    verdict,
    verdicts,
)

DRAINED = replace(demoted(1, Cause.MAINTENANCE), drained_since=START)
CONTROLLERS = frozenset({101, 102, 103})
WELL = FaultTolerance(quorum=Quorum(CONTROLLERS, CONTROLLERS))


def ring(brokers: int = 5, *more: Partition, **besides: object) -> Cluster:
    """Every broker has a partition of three replicas."""
    ids = list(range(1, brokers + 1))
    rings = [
        partition(index=i, replicas=[ids[(i + k) % brokers] for k in range(min(3, brokers))]) for i in range(brokers)
    ]
    return cluster(*rings, *more, brokers=brokers, **besides)  # type: ignore[arg-type]


def decided(
    seen: Cluster,
    *said: Override,
    undo: Sequence[DemotedBroker] = (),
    pods: Mapping[int, Pod] | None = None,
    signals: Sequence[Signal] = (),
    judged: Mapping[int, Verdict] | None = None,
    cap: int | str = "20%",
    mode: PromotionMode = PromotionMode.AUTOMATIC,
) -> Decisions:
    policy = Policy(name="main", demotion=Demotion(dwell_seconds=0, max_brokers=cap), promotion=Promotion(mode=mode))
    facts = snapshot(seen, *signals, now=after(100), undo=record(None, *undo), overrides=said)
    return decide(Context(replace(facts, pods=pods), judged or verdicts(seen), policy))


def held(made: Decisions) -> dict[int, str]:
    return {h.broker: str(h.reason) for h in made.held}


class TestBeginning:
    def test_broker_in_maintenance_is_kept_from_leading_with_persons_words(self):
        made = decided(ring(), drain(1, "new disk", after(200)))
        assert made.demoted[1] == DemotedBroker(
            1,
            Cause.MAINTENANCE,
            Reason.IN_MAINTENANCE,
            "new disk (until 2026-01-01T00:03:20Z)",
            after(100),
            drained_since=after(100),
        )
        assert made.held == ()

    def test_persons_drain_neither_obeys_nor_uses_cap(self):
        seen = ring(10)
        made = decided(seen, drain(1), drain(5), cap=1, judged=verdicts(seen, sick=[8]))
        assert (list(made.demoted), held(made)) == ([1, 5, 8], {})

    def test_nor_does_a_drain_that_is_held(self):
        seen = ring(10)
        made = decided(
            seen, cap=1, pods={1: Pod("kafka-1", leaving=True)}, undo=[demoted(8)], judged=verdicts(seen, sick=[8])
        )
        assert (list(made.demoted), held(made)) == ([8], {1: "CapReached"})

    def test_what_signals_demoted_stays_their_demotion(self):
        seen = ring()
        made = decided(seen, drain(1), undo=[demoted(1)], judged=verdicts(seen, sick=[1]))
        assert made.demoted[1].cause is Cause.SIGNALS

    def test_a_demotion_by_hand_becomes_maintenance_without_moving_its_time(self):
        made = decided(ring(), drain(1), undo=[demoted(1, Cause.OVERRIDE, after(3))])
        assert (made.demoted[1].cause, made.demoted[1].since) == (Cause.MAINTENANCE, after(3))

    def test_a_new_end_changes_the_message_alone(self):
        made = decided(ring(), drain(1, "new disk", after(900)), undo=[DRAINED])
        assert made.demoted[1] == replace(
            DRAINED, reason=Reason.IN_MAINTENANCE, message="new disk (until 2026-01-01T00:15:00Z)"
        )

    def test_an_unknown_broker_is_named(self):
        assert held(decided(ring(), drain(99))) == {99: "BrokerDown"}


class TestHolding:
    @pytest.mark.parametrize(
        ("others", "undo"),
        [
            pytest.param({"sick": [2, 3]}, [], id="the others are sick"),
            pytest.param({"down": [2], "sick": [3]}, [], id="one is down and one is sick"),
            pytest.param({}, [demoted(2, Cause.OVERRIDE), demoted(3, Cause.COMMAND)], id="the others are demoted"),
        ],
    )
    def test_the_last_healthy_broker_is_not_drained(
        self, others: Mapping[str, Sequence[int]], undo: Sequence[DemotedBroker]
    ):
        seen = ring(3)
        words = [override(d.broker) for d in undo if d.cause is Cause.OVERRIDE]
        made = decided(seen, drain(1), *words, undo=undo, judged=verdicts(seen, **others))
        assert 1 not in made.demoted
        assert held(made)[1] == "AnotherBrokerUnhealthy"

    def test_partition_without_another_leader_keeps_no_other_on_broker(self):
        alone = [partition("logs", replicas=[1]), partition("logs", index=1, replicas=[1, 2, 3], isr=[1])]
        made = decided(ring(5, *alone), drain(1))
        assert (list(made.demoted), held(made)) == ([1], {})

    def test_of_two_drains_the_later_leads_what_only_both_can(self):
        seen = ring(5, partition("pair", replicas=[1, 2]))
        for first, second in ((1, 2), (2, 1)):
            undo = [replace(demoted(first, Cause.MAINTENANCE), drained_since=START)]
            sickness = decided(seen, drain(1), drain(2), undo=undo).sickness
            assert LESS_SICK < sickness[second] < sickness[first] < LESS_SICK + 1

    def test_a_drain_in_progress_survives_later_findings(self):
        seen = ring(5, partition("logs", replicas=[1, 2], isr=[1]))
        assert list(decided(seen, drain(1), undo=[DRAINED]).demoted) == [1]


class TestStopping:
    """Once it leads nothing: may its partitions still be written without it (invariant 13)?"""

    def check(
        self,
        *partitions: Partition,
        least: int | None = 2,
        accepting: bool = False,
        asked: bool = True,
        others: Mapping[int, DemotedBroker] = MappingProxyType({}),
        fenced: Sequence[int] = (),
        tolerance: FaultTolerance | None = WELL,
    ) -> StopCheck:
        seen = cluster(*partitions, brokers=5, fenced=fenced)
        facts = snapshot(seen, overrides=[drain(b) for b in (1, *others)])
        floors = {p.topic: least for p in partitions} if least is not None else {}
        facts = replace(facts, floors=floors, fault_tolerance=tolerance)
        why = Maintenance(1, Reason.IN_MAINTENANCE, "", asked, accept_unavailable_writes=accepting)
        return stop_check(why, {1: DRAINED, **others}, facts)

    @pytest.mark.parametrize(
        ("replicas", "isr", "least", "safe"),
        [
            pytest.param((2, 3, 1), (1, 2, 3), 2, True, id="two others in sync"),
            pytest.param((2, 3, 1), (1, 2), 2, False, id="one other in sync"),
            pytest.param((2, 3, 1), (1, 2), 1, True, id="one other in sync, and one is enough"),
            pytest.param((2, 3, 1), (2,), 2, False, id="too few already: without it they stay so"),
            pytest.param((2, 3, 1), (2, 3), 2, True, id="it is out of sync, and the others are enough"),
            pytest.param((2, 1), (1, 2), 2, False, id="as many replicas as the minimum"),
            pytest.param((2, 1), (1, 2), 3, False, id="the minimum is at most the number of replicas"),
        ],
    )
    def test_broker_may_be_stopped_where_enough_others_are_in_sync(
        self, replicas: tuple[int, ...], isr: tuple[int, ...], least: int, safe: bool
    ):
        found = self.check(partition(replicas=replicas, isr=isr), least=least)
        assert (found.safe, found.reason) == (
            (True, Reason.LEADS_NOTHING) if safe else (False, Reason.NO_FAULT_TOLERANCE)
        )

    def test_the_message_names_partition_isr_minimum_and_remedy(self):
        assert_wording(self.check(partition(replicas=(2, 3, 1), isr=(2, 1))).message)

    def test_as_many_replicas_as_the_minimum_are_not_waited_for(self):
        pairs = [partition(index=i, replicas=(2, 1)) for i in range(4)]
        message = self.check(*pairs).message
        assert_wording(message)
        both = self.check(*pairs, partition("others", replicas=(2, 3, 1), isr=(1, 2))).message
        assert_wording(both)

    def test_an_isr_member_that_is_dead_does_not_count(self):
        assert self.check(partition(replicas=(2, 3, 1)), fenced=[3]).reason is Reason.NO_FAULT_TOLERANCE

    def test_last_member_of_isr_is_not_stopped_whatever_is_accepted(self):
        found = self.check(partition(replicas=(2, 3, 1), isr=(1,)), accepting=True)
        assert (found.safe, found.reason) == (False, Reason.NO_FAULT_TOLERANCE)
        assert_wording(found.message)

    def test_a_setting_that_is_not_known_counts_as_not_kept(self):
        found = self.check(partition(replicas=(2, 3, 1)), least=None)
        assert (found.safe, found.reason) == (False, Reason.NO_EVIDENCE)
        assert_wording(found.message)

    @pytest.mark.parametrize("least", [2, None])
    def test_less_may_be_accepted_by_name(self, least: int | None):
        found = self.check(partition(replicas=(2, 3, 1), isr=(1, 2)), least=least, accepting=True)
        assert (found.safe, found.reason) == (True, Reason.LEADS_NOTHING)
        assert "spec.override.acceptUnavailableWrites accepts" in found.message

    def test_what_is_accepted_is_not_mentioned_where_nothing_is_lost(self):
        found = self.check(partition(replicas=(2, 3, 1)), accepting=True)
        assert found.reason == Reason.LEADS_NOTHING
        assert_wording(found.message)

    def test_restarting_pod_is_not_offered_fields_it_lacks(self):
        assert "override" not in self.check(partition(replicas=(2, 3, 1), isr=(1, 2)), asked=False).message

    def test_a_broker_that_has_stopped_is_not_asked_about(self):
        assert self.check(partition(replicas=(2, 3, 1), isr=(2,)), fenced=[1]).safe

    def test_of_two_drained_brokers_the_later_waits_for_the_earlier(self):
        two = [partition(replicas=(4, 1, 2))]
        later, earlier = (replace(demoted(2, since=after(-99)), drained_since=after(at)) for at in (9, -9))
        assert self.check(*two, others={2: later}).safe, "by the start of maintenance, not of its demotion"
        found = self.check(*two, others={2: earlier})
        assert not found.safe
        assert_wording(found.message)

    @pytest.mark.parametrize(
        ("alone", "cure"),
        [
            pytest.param([([1], [1])], "raise the replication factor, or stop it and accept", id="the only replica"),
            pytest.param([([1, 2, 3], [1])], "wait until other replicas are in the ISR", id="the only ISR member"),
            pytest.param([([1], [1]), ([1, 2], [1])], "and raise the replication factor of 1 of them", id="both"),
            pytest.param([([1], [1])] * 4, "(logs-0, logs-1, logs-2 and 1 more): raise", id="four"),
        ],
    )
    def test_partitions_without_another_leader_are_named_with_the_remedy(
        self, alone: Sequence[tuple[list[int], list[int]]], cure: str
    ):
        found = self.check(*(partition("logs", i, replicas, isr=isr) for i, (replicas, isr) in enumerate(alone)))
        assert (found.safe, found.reason) == (False, Reason.NO_FAULT_TOLERANCE)
        assert_wording(found.message)
        assert cure in found.message

    @pytest.mark.parametrize(
        ("voters", "current", "others", "text"),
        [
            pytest.param([101], [101], {}, None, id="it is no voter"),
            pytest.param([1, 2, 3], [1, 2, 3], {}, None, id="two others keep up"),
            pytest.param([1, 2, 3], [2, 3], {}, None, id="it is behind itself"),
            pytest.param(
                [1, 2, 3],
                [1, 2],
                {},
                "it is one of 3 controller voters, 2 of them in sync: without it 1 would be, and a majority is 2: wait"
                " until another controller is in sync",
                id="another is behind",
            ),
            pytest.param(
                [1, 2, 3],
                [1, 2, 3],
                {2: replace(demoted(2), drained_since=after(-9))},
                "without brokers 1, 2 1 would be, and a majority is 2",
                id="another was drained before",
            ),
            pytest.param(
                [1, 2, 3], [1, 2, 3], {2: replace(demoted(2), drained_since=after(9))}, None, id="another comes later"
            ),
        ],
    )
    def test_the_controllers_keep_a_majority(
        self, voters: list[int], current: list[int], others: Mapping[int, DemotedBroker], text: str | None
    ):
        quorum = FaultTolerance(quorum=Quorum(frozenset(voters), frozenset(current)))
        for accepting in (False, True):
            found = self.check(partition(replicas=(3, 4, 5)), others=others, tolerance=quorum, accepting=accepting)
            assert (found.safe, found.reason) == (
                (text is None),
                Reason.LEADS_NOTHING if text is None else Reason.NO_FAULT_TOLERANCE,
            )
            assert (text or "safe to stop") in found.message

    @pytest.mark.parametrize(
        ("why", "tolerance", "remedy"),
        [
            ("it was not read", None, "wait until it is read"),
            ("silent", FaultTolerance(problem="silent"), "wait until it is read"),
            ("too old", FaultTolerance(problem="too old", lasting=True), "act on that, as waiting does not help"),
        ],
    )
    def test_a_quorum_that_is_not_known_counts_as_not_kept(
        self, why: str, tolerance: FaultTolerance | None, remedy: str
    ):
        found = self.check(partition(replicas=(2, 3, 1)), tolerance=tolerance)
        assert (found.safe, found.reason) == (False, Reason.NO_EVIDENCE)
        assert f"without broker 1 is not known ({why}): {remedy}, or set" in found.message
        accepted = self.check(partition(replicas=(2, 3, 1)), tolerance=tolerance, accepting=True)
        assert accepted.safe
        assert f"not known ({why}), which spec.override.acceptUnavailableWrites accepts" in accepted.message


class TestEnding:
    def test_a_broker_that_is_well_leads_again(self):
        assert decided(ring(), undo=[DRAINED]).promoted == (1,)

    def test_an_end_in_the_past_is_an_end(self):
        assert decided(ring(), drain(1, until=after(99)), undo=[DRAINED]).promoted == (1,)

    def test_manual_promotion_is_for_sick_and_not_for_planned_restart(self):
        assert decided(ring(), undo=[DRAINED], mode=PromotionMode.MANUAL).promoted == (1,)

    def test_one_whose_probers_are_silent_waits(self):
        seen = ring()
        made = decided(seen, undo=[DRAINED], signals=[signal(1)], judged=verdicts(seen, unknown=[1]))
        assert made.demoted[1] == replace(
            DRAINED, reason=Reason.STABILIZING, message=made.demoted[1].message, drained_since=None
        )
        assert made.demoted[1].cause is Cause.MAINTENANCE

    def test_without_signals_the_end_of_the_drain_promotes(self):
        seen = ring()
        assert decided(seen, undo=[DRAINED], judged=verdicts(seen, unknown=[1])).promoted == (1,)

    def test_promoted_ends_it_whatever_else(self):
        seen = ring()
        promoted = override(1, OverrideState.PROMOTED)
        made = decided(
            seen, promoted, undo=[DRAINED], judged=verdicts(seen, sick=[1]), pods={1: Pod("k-1", ready=False)}
        )
        assert made.promoted == (1,)

    def test_a_broker_that_has_left_the_cluster_is_forgotten(self):
        assert decided(ring(), undo=[demoted(9, Cause.MAINTENANCE)]).promoted == (9,)

    def test_a_policy_that_is_deleted_gives_a_drained_broker_back(self):
        seen = ring()
        facts = snapshot(seen, undo=record(None, DRAINED), overrides=[drain(1)])
        assert decide_on_deletion(Context(facts, verdicts(seen, unknown=[1]), Policy(name="main"))).promoted == (1,)


class TestPods:
    LEAVING = Pod("kafka-1", leaving=True)

    def test_a_pod_that_terminates_drains_its_broker(self):
        made = decided(ring(), pods={1: self.LEAVING, 2: Pod("kafka-2")})
        assert made.demoted[1] == DemotedBroker(
            1,
            Cause.MAINTENANCE,
            Reason.RESTARTING,
            "pod kafka-1 is terminating",
            after(100),
            drained_since=after(100),
        )

    @pytest.mark.parametrize(
        "pods",
        [
            pytest.param({4: Pod("kafka-4", ready=False), 8: Pod("kafka-8", leaving=True)}, id="the cap"),
            pytest.param({b: Pod(f"kafka-{b}", ready=False) for b in range(1, 6)}, id="half of the pods"),
        ],
    )
    def test_where_that_is_held_its_signals_demote_it_instead(self, pods: Mapping[int, Pod]):
        seen = ring(10)
        judged = {**verdicts(seen), 4: verdict(4, severity=9)}
        undo = [DRAINED] if 8 not in pods else [replace(DRAINED, broker=8, reason=Reason.RESTARTING)]
        made = decided(seen, pods=pods, cap=1, undo=undo, judged=judged)
        assert made.demoted[4].cause is Cause.SIGNALS
        assert 4 not in held(made)

    def test_it_is_bound_by_the_cap(self):
        made = decided(ring(10), pods={1: self.LEAVING, 4: Pod("kafka-4", ready=False)}, cap=1)
        assert (list(made.demoted), held(made)) == ([1], {4: "CapReached"})

    def test_one_that_is_dead_already_takes_no_room(self):
        seen = ring(10, fenced=[4])
        made = decided(
            seen, pods={1: self.LEAVING, 4: Pod("kafka-4", ready=False)}, cap=1, judged=verdicts(seen, down=[4])
        )
        assert (list(made.demoted), held(made)) == ([1, 4], {})

    def test_one_that_restarts_takes_no_room_from_what_signals_demote(self):
        made = decided(ring(10), pods={1: self.LEAVING}, cap=1, judged=verdicts(ring(10), sick=[8]))
        assert (list(made.demoted), held(made)) == ([1, 8], {})

    def test_what_signals_demoted_takes_room_from_the_pods(self):
        made = decided(ring(10), pods={1: self.LEAVING}, cap=1, undo=[demoted(8)], judged=verdicts(ring(10), sick=[8]))
        assert (list(made.demoted), held(made)) == ([8], {1: "CapReached"})

    def test_where_half_of_pods_are_not_ready_none_is_drained(self):
        pods = {b: Pod(f"kafka-{b}", ready=False) for b in (1, 2)}
        assert held(decided(ring(4), pods=pods, cap=4)) == {1: "SystemicCause", 2: "SystemicCause"}

    def test_one_pod_of_two_live_brokers_is_no_shared_cause(self):
        seen = ring(3, fenced=[3])
        assert list(decided(seen, pods={1: self.LEAVING}, judged=verdicts(seen, down=[3])).demoted) == [1]

    def test_a_persons_drain_takes_no_room_from_the_pods(self):
        made = decided(ring(10), drain(1), pods={4: Pod("kafka-4", ready=False)}, undo=[DRAINED], cap=1)
        assert (list(made.demoted), held(made)) == ([1, 4], {})

    def test_signals_of_broker_with_held_drain_obey_cap(self):
        seen = ring(10)
        judged = {**verdicts(seen, sick=[8]), 4: verdict(4, severity=9)}
        made = decided(seen, pods={4: Pod("kafka-4", ready=False)}, undo=[demoted(8)], cap=1, judged=judged)
        assert (list(made.demoted), held(made)) == ([8], {4: "CapReached"})
        assert "demoted by signals)" in made.held[0].message, "the refusal that counts is that of its fault"

    def test_brokers_with_held_drain_take_over_from_sick_rack(self):
        racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
        seen = cluster(
            *(partition(index=i, replicas=[1 + 3 * (i % 2), 2, 3]) for i in range(4)), brokers=6, racks=racks
        )
        pods = {b: Pod(f"kafka-{b}", ready=False) for b in (2, 3, 5)}
        made = decided(seen, pods=pods, judged=verdicts(seen, sick=[1, 4]))
        assert (list(made.demoted), held(made)) == ([1, 4], dict.fromkeys((2, 3, 5), "SystemicCause"))

    def test_manual_demotion_keeps_cause_and_maintenance_start_when_pod_restarts(self):
        by_hand = replace(demoted(1, Cause.OVERRIDE), drained_since=after(7))
        made = decided(ring(), override(1), undo=[by_hand], pods={1: self.LEAVING})
        assert (made.demoted[1].cause, made.demoted[1].drained_since) == (Cause.OVERRIDE, after(7))

    def test_broker_with_held_drain_may_lead_for_sick_one(self):
        seen = ring(3)
        pods = {b: Pod(f"kafka-{b}", ready=False) for b in (2, 3)}
        made = decided(seen, pods=pods, judged=verdicts(seen, sick=[1]))
        assert (list(made.demoted), held(made)) == ([1], {2: "SystemicCause", 3: "SystemicCause"})


def test_broker_without_asked_listener_is_never_safe_to_stop():
    seen = cluster(partition(replicas=[4, 1, 2]))
    facts = replace(snapshot(seen, overrides=[drain(4)]), floors={"orders": 1})
    found = stop_check(facts.maintenance[4], {4: demoted(4, Cause.MAINTENANCE)}, facts)
    assert found == StopCheck(False, Reason.LISTENER_MISSING, seen.without_listener(4))
