"""Two brokers that do not reach each other: who leads what they share, when it returns, and what does not move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.cli.diagnosis.explain import explanation
from bellwether.controllers.reporting.events import news
from bellwether.controllers.reporting.status import broker_status
from bellwether.core.demotion.decisions import decide_on_deletion, manual_decision
from bellwether.core.demotion.links import WATCHED_SECONDS
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.model.undo_record import Link
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, ReplicationLag
from bellwether.core.settings.placement import Scope
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Promotion, PromotionMode, PromotionWaves
from bellwether.core.signals import OverrideState, Purpose, Reading
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.link_stage import LinkStage as Stage
from testkit.simulation.operators import POLICY, Operator

GOOD, BAD = Reading.PASSING, Reading.FAILING
PAIR = Link(1, 2)
STABLE = 12
WAVES = replace(POLICY, promotion=Promotion(stabilization_seconds=10, waves=PromotionWaves(pause_seconds=5)))


def test_third_broker_leads_what_broken_pair_shares_without_new_replicas():
    stage = Stage().cut()
    assert (stage.led(1), stage.led(2), stage.led(3)) == (0, 0, 12)
    assert {k: set(v) for k, v in stage.orders().items()} == {k: set(v) for k, v in stage.home.items()}
    for broker, other in ((1, 2), (2, 1)):
        found = stage.report(broker)
        assert (found.verdict.state, found.verdict.reason) == (HealthState.SUSPECT, Reason.BROKEN_LINK)
        assert f"it and broker {other} do not reach each other" in found.verdict.message
        assert (
            found.condition("Demoted").message == f"8 partitions that it shares with broker {other} are led by others"
        )
    assert "brokers 1 and 2 do not reach each other: others lead 8 partitions of both" in stage.ready()
    assert stage.report(3).verdict.state is HealthState.HEALTHY


def test_of_six_only_what_both_have_is_led_by_another():
    stage = Stage(6, partitions=24)
    before = stage.leaders()
    stage.cut()
    moved = {name for name, leader in stage.leaders().items() if leader != before[name]}
    assert moved
    assert moved == {n for n, order in stage.home.items() if {1, 2} <= set(order) and order[0] in PAIR}


def test_one_that_alone_reports_the_other_moves_nothing():
    stage = Stage()
    stage.say(1, 2)
    stage.turn()
    assert stage.orders() == stage.home
    assert stage.report().verdict.reason is Reason.SIGNALS_PASSING


def test_without_a_third_replica_nothing_moves_and_it_is_said():
    stage = Stage(replicas=2).cut()
    assert stage.orders() == stage.home
    assert not stage.record.links
    assert_wording(stage.ready())
    assert Reason.NO_HEALTHY_ISR_MEMBER in stage.held()


def test_a_third_that_is_not_healthy_takes_nothing():
    stage = Stage()
    stage.site.signals.say(3, BAD, sources=["vantage-a"])  # a dispute between vantages: Suspect
    stage.cut()
    assert stage.orders() == stage.home


class TestReturn:
    def test_leaders_return_once_no_lag_was_seen_for_stabilization_time(self):
        stage = Stage().cut()
        stage.mend(turns=8)
        assert stage.led(3) == 12
        assert_wording(stage.report().verdict.message)
        stage.turn(5)
        assert stage.orders() == stage.home
        stage.turn(WATCHED_SECONDS + 2)
        assert not stage.record.links

    def test_leaders_return_in_waves_and_lagging_wave_is_undone(self):
        stage = Stage(policy=WAVES, partitions=60).cut()
        stage.mend(turns=STABLE)
        assert 0 < stage.led(1) + stage.led(2) < 10, "the first wave"
        stage.cut()
        assert stage.led(3) == 60
        assert stage.record.links[PAIR].times == 2
        stage.mend(turns=STABLE)
        assert stage.led(3) == 60, "the next time is twice as long"
        stage.turn(30)
        assert stage.orders() == stage.home

    def test_link_that_breaks_again_after_full_return_is_remembered(self):
        stage = Stage().cut()
        stage.mend(turns=STABLE + WATCHED_SECONDS // 2)
        assert stage.orders() == stage.home
        stage.cut()
        assert stage.led(3) == 12
        assert stage.record.links[PAIR].times == 2

    def test_only_time_with_both_ends_reporting_well_counts(self):
        stage = Stage(policy=replace(POLICY, promotion=replace(POLICY.promotion, stabilization_seconds=45)))
        stage.cut(turns=20)
        stage.mend(turns=10)
        stage.site.signals.silence("replication")
        stage.turn(60)
        assert stage.led(3) == 12, "the prober is silent: it is not known to be well"
        assert stage.report().verdict.state is HealthState.HEALTHY, "nothing is known against it"
        stage.site.signals.resume("replication")
        stage.turn(2)
        assert stage.led(3) == 12
        stage.turn(30)
        assert stage.orders() == stage.home

    def test_manual_promotion_waits_for_a_person(self):
        manual = replace(POLICY, promotion=replace(POLICY.promotion, mode=PromotionMode.MANUAL))
        stage = Stage(policy=manual).cut()
        stage.mend(turns=3 * STABLE)
        assert stage.led(3) == 12
        assert Reason.PROMOTION_MANUAL in stage.held()
        stage.site.signals.override(1, OverrideState.PROMOTED)
        stage.turn()
        assert stage.orders() == stage.home


class TestEnd:
    """A link does not outlive one of its ends."""

    @pytest.mark.parametrize("end", [1, 2])
    def test_it_ends_at_once_when_an_end_is_fenced(self, end: int):
        stage = Stage(6, partitions=24).cut()
        stage.site.cluster.fence(end)
        stage.turn(1)
        assert not stage.record.links
        stage.turn(2)
        assert stage.orders() == stage.home

    def test_it_ends_when_dead_end_is_no_longer_registered(self):
        stage = Stage(6, partitions=24).cut()
        stage.site.cluster.kill(2)
        stage.turn(2)
        assert not stage.record.links

    def test_it_stays_while_metadata_omits_living_end(self):
        stage = Stage(6, partitions=24).cut()
        led = stage.leaders()
        stage.site.cluster.without_listener.add(2)
        stage.turn(2)
        assert PAIR in stage.record.links
        assert stage.leaders() == led

    def test_it_ends_when_policy_stops_measuring_replication_lag(self):
        stage = Stage().cut()
        off = replace(POLICY, detection=Detection(replication_lag=ReplicationLag(enabled=False)))
        stage.operator.policy = off
        stage.turn()
        assert stage.orders() == stage.home

    def test_deleting_the_policy_restores_the_orders(self):
        stage = Stage().cut()
        stage.operator.reconcile(decide_on_deletion)
        assert stage.orders() == stage.home
        assert not stage.record.links


class TestTheThird:
    """Leaders do not go to and fro with the health of the third broker."""

    def test_one_that_turns_suspect_keeps_them(self):
        stage = Stage().cut()
        led = stage.leaders()
        stage.site.signals.say(3, BAD, sources=["vantage-a"])
        stage.turn(4)
        assert stage.leaders() == led

    def test_one_that_becomes_sick_but_stays_undemoted_keeps_them(self):
        stage = Stage(policy=replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=1))).cut()
        led, orders = stage.leaders(), stage.orders()
        for reading in (BAD, GOOD) * 3:
            stage.operator.policy = replace(POLICY, demotion=Demotion(dwell_seconds=30))
            stage.site.signals.say(3, reading)
            stage.turn(2)
        assert (stage.leaders(), stage.orders()) == (led, orders)

    def test_demoted_third_gives_leaders_to_pair_until_well_for_long(self):
        stage = Stage().cut()
        stage.site.signals.say(3, BAD)
        stage.turn(3)
        assert stage.led(3) == 0
        home = stage.leaders()
        stage.site.signals.say(3, GOOD)
        stage.turn(STABLE)
        assert stage.record.demoted == {}
        assert {n: stage.leaders()[n] for n, o in stage.home.items() if o[0] in PAIR} == {
            n: home[n] for n, o in stage.home.items() if o[0] in PAIR
        }
        stage.turn(STABLE)
        assert stage.led(3) == 12

    def test_dead_third_gets_leaders_back_from_kafka_without_new_orders(self):
        stage = Stage().cut()
        orders = stage.orders()
        stage.site.cluster.kill(3)
        stage.turn(4)
        assert (stage.orders(), stage.led(3)) == (orders, 0), "Kafka has elected the next in order"
        stage.site.cluster.revive(3)
        stage.turn(2)
        stage.site.cluster.auto_balance()
        stage.turn(STABLE)
        assert (stage.orders(), stage.led(3)) == (orders, 12)


class TestLimits:
    def test_a_third_at_its_limit_takes_no_more(self):
        capacity = Capacity(max_leaders=6)
        stage = Stage(policy=replace(POLICY, demotion=Demotion(dwell_seconds=0, capacity=capacity))).cut()
        assert stage.led(3) == 6
        assert {h.reason for h in stage.operator.reports[-1].plan.holds} == {Reason.CAPACITY_REACHED}

    def test_a_topic_out_of_scope_stays(self):
        stage = Stage(policy=replace(POLICY, scope=Scope(excluded=("orders",)))).cut()
        assert stage.orders() == stage.home
        assert not stage.record.links
        assert Reason.NO_HEALTHY_ISR_MEMBER in stage.held()

    def test_links_count_within_the_cap(self):
        stage = Stage(12, POLICY, partitions=48)  # 20 % of 12: two
        stage.cut(1, 2)
        stage.cut(3, 4)
        assert set(stage.record.links) == {PAIR, Link(3, 4)}
        stage = Stage(12, replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=1)), partitions=48).cut(1, 2)
        stage.cut(3, 4)
        assert set(stage.record.links) == {PAIR}
        assert Reason.CAP_REACHED in stage.held()
        assert "spec.demotion.maxBrokers is 1" in stage.ready()

    def test_a_broken_link_keeps_no_sick_broker_from_being_demoted(self):
        stage = Stage(6, replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=1)), partitions=24).cut()
        stage.site.signals.say(5, BAD)
        stage.turn()
        assert set(stage.record.demoted) == {5}

    def test_a_demoted_broker_leaves_no_room_for_a_link(self):
        stage = Stage(6, replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=1)), partitions=24)
        stage.site.signals.say(5, BAD)
        stage.turn()
        stage.cut()
        assert not stage.record.links
        assert Reason.CAP_REACHED in stage.held()

    def test_many_pairs_apart_have_a_shared_cause_and_move_nothing(self):
        stage = Stage(6, replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=5)), partitions=24)
        for one, other in ((1, 2), (3, 4), (5, 6)):
            stage.say(one, other)
            stage.say(other, one)
        stage.turn()
        assert stage.orders() == stage.home
        assert Reason.SYSTEMIC_CAUSE in stage.held()
        assert (
            "3 links between 6 of 6 live brokers are broken, probably by a shared cause such as a switch"
            in stage.ready()
        )


class TestPeople:
    """Overrides and maintenance take precedence."""

    @pytest.mark.parametrize("end", [1, 2])
    def test_an_end_with_an_override_takes_part_in_nothing_new(self, end: int):
        for state in OverrideState:
            stage = Stage()
            stage.site.signals.override(end, state)
            stage.turn()
            before = stage.orders()
            stage.cut()
            assert not stage.record.links
            assert stage.orders() == before

    def test_end_in_maintenance_starts_and_ends_nothing(self):
        stage = Stage()
        stage.site.signals.override(2, OverrideState.DEMOTED, purpose=Purpose.MAINTENANCE)
        stage.turn()
        stage.cut()
        assert not stage.record.links
        stage = Stage().cut()
        stage.site.signals.override(2, OverrideState.DEMOTED, purpose=Purpose.MAINTENANCE)
        stage.turn(3 * STABLE)
        assert stage.led(3) == 12

    def test_an_override_that_lets_an_end_lead_ends_the_link(self):
        stage = Stage().cut()
        stage.site.signals.override(1, OverrideState.PROMOTED)
        stage.turn()
        assert stage.orders() == stage.home

    def test_command_leaves_links_as_they_are_and_promotion_ends_them(self):
        stage = Stage().cut()
        stage.operator.reconcile(manual_decision())
        assert stage.led(3) == 12
        assert set(stage.record.links) == {PAIR}
        stage.operator.reconcile(manual_decision(promote=[2]))
        assert stage.orders() == stage.home


class TestDeferral:
    """Other work goes first: a link does not act twice."""

    BUSY = Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",))

    def test_nothing_new_during_external_operation_and_what_has_moved_stays(self):
        stage = Stage(6, partitions=24)
        stage.operator.world = replace(stage.operator.world, strimzi=self.BUSY)
        stage.cut()
        assert stage.orders() == stage.home
        assert Reason.EXTERNAL_OPERATION in stage.held()
        stage.operator.world = replace(stage.operator.world, strimzi=None)
        stage.turn()
        moved = stage.orders()
        assert moved != stage.home
        stage.operator.world = replace(stage.operator.world, strimzi=self.BUSY)
        stage.mend(turns=3 * STABLE)
        assert stage.orders() == moved
        stage.operator.world = replace(stage.operator.world, strimzi=None)
        stage.turn(4)
        assert stage.orders() == stage.home

    def test_nothing_new_while_syncs_are_slow(self):
        stage = Stage(6, partitions=24)
        stage.slow_syncs(6)
        stage.turn()
        stage.cut()
        assert stage.orders() == stage.home
        assert Reason.SYNCS_SLOW in stage.held()

    def test_a_wave_is_neither_undone_nor_followed_by_another(self):
        stage = Stage(6, WAVES, partitions=240).cut()
        stage.mend(turns=STABLE)
        led, wave = stage.leaders(), stage.record.links[PAIR].wave
        assert wave is not None
        stage.slow_syncs(6)
        stage.turn(20)
        assert stage.record.links[PAIR].wave == wave
        stage.cut()
        assert stage.leaders() == led
        assert stage.record.links[PAIR].wave == wave

    @pytest.mark.parametrize("off", [{"mode": Mode.OBSERVE}, {"suspend": True}])
    def test_inactive_policy_moves_nothing_and_says_what_it_would(self, off: dict[str, object]):
        stage = Stage(policy=replace(POLICY, **off))  # type: ignore[arg-type]
        stage.cut()
        assert stage.orders() == stage.home
        assert not stage.record.links
        assert_wording(stage.ready())
        assert "are led by others" not in stage.report().condition("Demoted").message
        assert broker_status(stage.report(), None, {}, stage.site.clock.now()).get("brokenLinks", []) == []


def test_a_link_waits_for_the_dwell_time():
    stage = Stage(policy=replace(POLICY, demotion=Demotion(dwell_seconds=5))).cut(turns=3)
    assert stage.orders() == stage.home
    assert stage.report().condition("Demoted").reason is Reason.DWELL_PENDING
    stage.turn(4)
    assert stage.led(3) == 12


def test_the_report_stays_the_same_while_nothing_changes():
    stage = Stage().cut(turns=3)
    before = stage.operator.reports[-1]
    writes = stage.site.store.writes
    stage.turn(30)
    now = stage.operator.reports[-1]
    assert now.brokers == before.brokers
    assert [c.message for c in now.conditions] == [c.message for c in before.conditions]
    assert stage.site.store.writes == writes


def test_the_next_process_continues():
    stage = Stage().cut()
    record = stage.record.links
    stage.operator = Operator(stage.site)
    stage.turn(5)
    assert stage.record.links == record
    assert stage.led(3) == 12


def test_status_events_and_explain_name_the_other_end():
    stage = Stage().cut()
    now, at = stage.operator.reports[-1], stage.site.clock.now()
    body = broker_status(stage.report(), None, {}, at)
    (noted,) = body["brokenLinks"]
    assert (noted["broker"], noted["partitions"]) == (2, 8)
    said = [n for n in news(None, now) if "do not reach each other: others lead 8 partitions" in n.message]
    assert [(n.broker, n.warning) for n in said] == [(1, True), (2, True)]
    health = BrokerHealth.read({**api_objects.health(1), "status": body})
    assert any("It and broker 2 do not reach each other" in line for line in explanation(health, at, {}))
    stage.mend(turns=STABLE + 2)
    assert any("may lead again what both have" in n.message for n in news(now, stage.operator.reports[-1]))


def test_a_link_orders_its_ends():
    assert Link.between(7, 3) == Link(3, 7) == Link.between(3, 7)
    assert (PAIR.peer(1), PAIR.peer(2), PAIR.peer(3)) == (2, 1, None)
