"""Periodic election: what is out of balance, whom it elects and whom never, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.snapshot import RefusedOrder
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.planning.plan import MoveKind, Plan
from bellwether.core.planning.preferred_election import (
    AUTO_REBALANCE_CONFIG,
    QUERY_INTERVAL,
    AutoRebalance,
    LastRun,
    PreferredElectionPlan,
    PreferredElectionState,
    plan_preferred_election,
)
from bellwether.core.settings.policy import Election, Mode, Policy
from bellwether.core.signals import OverrideState, Purpose
from testkit.values.builders import (
    after,
    cluster,
    context,
    decisions,
    move,
    override,
    partition,
    returning,
    signal,
    snapshot,
    verdicts,
)

ENFORCE = Policy(name="main", mode=Mode.ENFORCE, election=Election(interval_seconds=300))
ASTRAY = partition(replicas=[1, 2, 3], leader=2)
BEGUN = PreferredElectionState(after(0))
PAUSED = Strimzi(namespace="kafka", name="main", listener="tls", paused=True)


def found(
    *seen: Partition,
    decided: Decisions | None = None,
    judged: Mapping[int, Verdict] | None = None,
    plan: Plan | None = None,
    policy: Policy = ENFORCE,
    rounds: PreferredElectionState | None = BEGUN,
    seconds: float = 300,
    **more: object,
) -> PreferredElectionPlan:
    at: Cluster = cluster(*(seen or (ASTRAY,)), brokers=4)
    facts = replace(snapshot(at, now=after(seconds)), **more)  # type: ignore[arg-type]
    made = plan or Plan(decisions=decided or decisions())
    said = plan_preferred_election(rounds, Context(facts, judged or verdicts(at), policy), made)
    assert said is not None
    return said


def elected(said: PreferredElectionPlan) -> list[int]:
    return [m.leads_next for m in said.moves]


def test_nothing_is_looked_for_unless_the_policy_asks():
    assert Election().interval_seconds == 0
    assert plan_preferred_election(None, context(snapshot(cluster(ASTRAY))), Plan()) is None


def test_first_of_order_is_elected_and_nothing_is_reordered():
    (made,) = found().moves
    assert (made.kind, made.reorders, made.elect, made.leads_next) == (MoveKind.BALANCE, False, True, 1)
    assert made.seen == made.order == made.baseline == (1, 2, 3)


def test_partitions_led_by_unnamed_brokers_stay():
    hidden = found(partition(leader_unknown=True))
    assert (hidden.imbalance, hidden.moves) == (0, ())


def test_a_service_without_elections_is_asked_for_none():
    seen = replace(cluster(ASTRAY, brokers=4), immovable="this Kafka service does not offer ElectLeaders")
    assert (
        plan_preferred_election(BEGUN, context(snapshot(seen, now=after(300)), verdicts(seen), ENFORCE), Plan()).moves
        == ()
    )


def test_refused_election_is_repeated_after_delay_or_isr_change():
    refused = {ASTRAY.key: RefusedOrder(ASTRAY.replicas, 2, after(291), "no", isr=frozenset(ASTRAY.isr))}
    assert elected(found(refused=refused, seconds=300)) == []
    assert elected(found(refused=refused, seconds=301)) == [1]
    assert elected(found(replace(ASTRAY, isr=(1, 2)), refused=refused, seconds=300)) == [1]


def test_what_is_led_by_its_first_is_left_alone():
    said = found(partition(), ASTRAY, partition("other", replicas=[3, 1]))
    assert (said.imbalance, len(said.moves)) == (1, 1)


@pytest.mark.parametrize(
    ("seen", "decided", "judged"),
    [
        pytest.param(replace(ASTRAY, isr=(2, 3)), decisions(), [], id="not in the ISR"),
        pytest.param(replace(ASTRAY, adding=(4,)), decisions(), [], id="in reassignment"),
        pytest.param(ASTRAY, decisions(1), [], id="demoted"),
        pytest.param(ASTRAY, decisions(back=[returning(1, 10)]), [], id="withheld"),
        pytest.param(ASTRAY, decisions(), ["sick"], id="sick"),
        pytest.param(ASTRAY, decisions(), ["suspect"], id="suspect"),
        pytest.param(ASTRAY, decisions(), ["down"], id="down"),
        pytest.param(ASTRAY, decisions(), ["recovering"], id="recovering"),
        pytest.param(ASTRAY, decisions(), ["unknown"], id="unknown, where others are judged"),
        pytest.param(replace(ASTRAY, replicas=(9, 2), isr=(9, 2)), decisions(), [], id="not registered"),
    ],
)
def test_an_unfit_first_replica_is_not_elected(seen: Partition, decided: Decisions, judged: Sequence[str]):
    standings = {word: [1] for word in judged}
    said = found(seen, decided=decided, judged=verdicts(cluster(seen, brokers=4), **standings))
    assert (said.imbalance, said.moves) == (1, ())


def test_a_broker_in_maintenance_is_not_elected():
    drained = replace(override(1, OverrideState.DEMOTED), purpose=Purpose.MAINTENANCE)
    assert found(overrides=(drained,)).moves == ()


def test_a_returning_broker_is_elected_where_its_turn_has_come():
    early = partition(index=2, leader=2)
    assert elected(found(early, decided=decisions(back=[returning(1, 10)]))) == [1]


def test_what_the_plan_has_in_hand_is_left_to_it():
    assert found(plan=Plan(targets={ASTRAY.key: (1, 2, 3)})).moves == ()


@pytest.mark.parametrize(
    ("heard", "leads"), [(False, [1]), (True, [])], ids=["no prober ever spoke", "probers have gone silent"]
)
def test_unjudged_brokers_are_elected_but_silent_ones_are_not(heard: bool, leads: list[int]):
    judged = verdicts(cluster(ASTRAY, brokers=4), unknown=[1, 2, 3, 4])
    signals = (signal(2, age_seconds=900.0),) if heard else ()
    assert elected(found(judged=judged, signals=signals)) == leads


def test_internal_topics_come_last():
    internal = partition("__consumer_offsets", leader=2, internal=True)
    assert [m.topic for m in found(internal, partition("zebra", leader=3)).moves] == ["zebra", "__consumer_offsets"]


class TestTime:
    def test_a_process_waits_an_interval_before_its_first_election(self):
        said = found(rounds=None, seconds=1000)
        assert (said.moves, said.rounds.since, said.again_seconds) == ((), after(1000), 300)

    def test_before_the_interval_is_over_it_only_counts(self):
        said = found(seconds=299)
        assert (said.imbalance, said.moves, said.again_seconds) == (1, (), 1)

    def test_an_election_restarts_the_interval(self):
        assert found(seconds=310).rounds.since == after(310)

    def test_a_balanced_cluster_restarts_the_interval_silently(self):
        said = found(partition(), seconds=310)
        assert (said.rounds, said.moves) == (PreferredElectionState(after(310)), ())
        assert said.done(0, after(310)).state == PreferredElectionState(after(310))

    def test_it_waits_for_whatever_moves_else(self):
        said = found(plan=Plan(moves=(move(),)))
        assert (said.moves, said.rounds.since) == ((), after(0))

    def test_it_waits_for_others_at_work(self):
        assert found(strimzi=PAUSED).moves == ()

    def test_observing_policy_says_at_every_reconcile_what_it_would_do(self):
        watching = replace(ENFORCE, mode=Mode.OBSERVE)
        said = found(policy=watching)
        assert (elected(said), said.rounds.since) == ([1], after(0))

    @pytest.mark.parametrize(
        "given",
        [
            pytest.param({"policy": replace(ENFORCE, mode=Mode.OBSERVE)}, id="observed"),
            pytest.param({"policy": replace(ENFORCE, suspend=True)}, id="suspended"),
            pytest.param({"strimzi": PAUSED}, id="others at work"),
            pytest.param({"plan": Plan(moves=(move(),))}, id="the plan moves"),
        ],
    )
    def test_an_overdue_election_does_not_shorten_the_requeue(self, given: dict[str, Any]):
        """A pause of Strimzi, or an Observe policy, lasts for days: metadata is not read every second meanwhile."""
        assert found(seconds=5000, **given).again_seconds == 300


class TestBeforeAndAfter:
    def test_imbalance_and_elections_are_remembered(self):
        assert found().done(1, after(300)).last == LastRun(after(300), before=1, elected=1)

    def test_an_election_that_moved_nothing_is_no_news(self):
        assert found().done(0, after(300)).last is None

    def test_the_imbalance_afterwards_is_what_a_later_read_shows(self):
        ran = PreferredElectionState(after(300), last=LastRun(after(300), before=7, elected=6))
        too_soon = found(rounds=ran, seconds=300.5)
        assert too_soon.rounds.last == LastRun(after(300), 7, 6)
        assert too_soon.again_seconds == 1
        assert found(rounds=ran, seconds=302).rounds.last == LastRun(after(300), 7, 6, after=1)

    def test_a_finished_run_stays_in_the_report(self):
        ran = PreferredElectionState(after(300), last=LastRun(after(300), 7, 6, after=0))
        assert found(rounds=ran, seconds=400).rounds == ran


@pytest.mark.parametrize(
    ("given", "auto"),
    [
        pytest.param(
            [{AUTO_REBALANCE_CONFIG: "true"}, {AUTO_REBALANCE_CONFIG: "true"}], AutoRebalance.ENABLED, id="on"
        ),
        pytest.param([{AUTO_REBALANCE_CONFIG: "false"}], AutoRebalance.DISABLED, id="off"),
        pytest.param(
            [{AUTO_REBALANCE_CONFIG: "true"}, {AUTO_REBALANCE_CONFIG: "false"}], AutoRebalance.MIXED, id="not alike"
        ),
        pytest.param([], AutoRebalance.UNKNOWN, id="no broker answers"),
        pytest.param([{}], AutoRebalance.UNKNOWN, id="no broker has the setting"),
        pytest.param([{}, {AUTO_REBALANCE_CONFIG: "false"}], AutoRebalance.DISABLED, id="one tells"),
        pytest.param([{AUTO_REBALANCE_CONFIG: "perhaps"}], AutoRebalance.UNKNOWN, id="an unknown value"),
    ],
)
def test_what_brokers_say_of_kafkas_own_balancing(given: list[dict[str, str]], auto: AutoRebalance):
    assert AutoRebalance.of(given) is auto


def test_brokers_are_asked_at_first_and_rarely_again():
    assert PreferredElectionState(after(0)).asks(after(0))
    asked = PreferredElectionState(after(0), asked_at=after(0))
    assert not asked.asks(after(0) + QUERY_INTERVAL - timedelta(seconds=1))
    assert asked.asks(after(0) + QUERY_INTERVAL)
