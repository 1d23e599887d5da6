"""Reachability: restarts, disputes between vantages, and the broker's own socket table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.quarantine_order import RELEASE_AFTER, QuarantineOrder
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, Reachability, StorageLatency
from bellwether.core.settings.harm import STALLED_SECONDS
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, partition, record, signal, snapshot, verdict
from testkit.values.quarantine_inputs import agent, ordered
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, of_one, words
from testkit.values.vantage_signals import POLICY as ANY_POLICY


class TestComingUp:
    """After a restart the load balancer is given time, until the broker was reachable once."""

    OUT = words(BAD, BAD)
    BACK = words(GOOD, GOOD)
    WAS_DOWN = verdict(state=HealthState.DOWN, reason=Reason.BROKER_DOWN, since=after(0))

    def test_a_broker_that_comes_up_unreachable_is_given_its_grace(self):
        found = of_one(snapshot(None, *self.OUT, now=after(10)), before=self.WAS_DOWN)
        assert (found.state, found.reason, found.restarted) == (HealthState.SUSPECT, Reason.RESTARTING, after(10))

    @pytest.mark.parametrize(
        ("seconds", "reason", "restarted"),
        [(179, Reason.RESTARTING, after(10)), (180, Reason.EXTERNALLY_UNREACHABLE, None)],
    )
    def test_the_grace_ends(self, seconds: int, reason: Reason, restarted: datetime | None):
        before = replace(verdict(state=HealthState.SUSPECT, reason=Reason.RESTARTING), restarted=after(10))
        found = of_one(snapshot(None, *self.OUT, now=after(10 + seconds)), before=before)
        assert (found.reason, found.restarted) == (reason, restarted)

    def test_a_fast_disk_does_not_end_the_grace(self):
        disk = signal(1, GOOD, kind=SignalType.STORAGE_LATENCY, source="broker-1", latency_seconds=0.001)
        found = of_one(snapshot(None, *self.OUT, disk, now=after(10)), before=self.WAS_DOWN)
        assert (found.reason, found.restarted) == (Reason.RESTARTING, after(10))

    def test_a_broker_that_was_reached_once_has_no_grace_left(self):
        before = replace(verdict(state=HealthState.SUSPECT, reason=Reason.RESTARTING), restarted=after(10))
        reached = of_one(snapshot(None, *self.BACK, now=after(20)), before=before)
        assert reached.restarted is None
        assert of_one(snapshot(None, *self.OUT, now=after(21)), before=reached).state is HealthState.SICK

    def test_a_broker_that_never_was_down_has_none(self):
        assert of_one(snapshot(None, *self.OUT), before=verdict(state=HealthState.HEALTHY)).state is HealthState.SICK

    def test_short_silence_on_way_up_does_not_end_grace(self):
        blank = of_one(snapshot(None, *words(DUNNO, DUNNO), now=after(5)), before=self.WAS_DOWN)
        assert (blank.state, blank.restarted) == (HealthState.UNKNOWN, None)
        found = of_one(snapshot(None, *self.OUT, now=after(10)), before=blank)
        assert (found.reason, found.restarted) == (Reason.RESTARTING, after(10))

    def test_a_demoted_broker_stays_suspect_and_is_not_promoted_meanwhile(self):
        undo = record(None, demoted(1))
        found = of_one(snapshot(None, *self.OUT, now=after(10), undo=undo), before=self.WAS_DOWN)
        assert found.state is HealthState.SUSPECT


class TestAStalledDirectoryBesideTheMetadataLog:
    """Heartbeats go on while the request threads hang: the controller will not fence the broker."""

    HANGS = words(BAD, BAD, control=BAD)
    DISK = signal(1, GOOD, kind=SignalType.STORAGE_LATENCY)
    STALLED = replace(
        DISK,
        source="broker-1-data-1",
        reading=BAD,
        latency_seconds=STALLED_SECONDS,
        directory="/data-1",
        metadata_log=False,
    )
    GOES_ON = replace(DISK, source="broker-1-data-0", directory="/data-0", metadata_log=True)
    UNFENCED = (HealthState.SICK, Reason.NOT_FENCED_IN_TIME)
    WAITS = (HealthState.DOWN, Reason.UNREACHABLE)

    def judged(self, *disks: Signal, orders: tuple[QuarantineOrder, ...] = (), policy: Policy = ANY_POLICY) -> Verdict:
        by_broker = {order.broker: order for order in orders}
        return of_one(replace(snapshot(None, *self.HANGS, *disks), quarantine_orders=by_broker), policy)

    def test_silent_broker_is_sick_as_whole_at_once(self):
        found = self.judged(self.STALLED, self.GOES_ON)
        assert (found.state, found.reason) == self.UNFENCED
        assert_wording(found.message)
        assert "does not run" not in found.message, "its heartbeats go on"

    @pytest.mark.parametrize(
        "disk",
        [
            pytest.param(replace(STALLED, metadata_log=True), id="its metadata log hangs as well"),
            pytest.param(replace(STALLED, metadata_log=None), id="unknown"),
            pytest.param(replace(STALLED, latency_seconds=STALLED_SECONDS - 0.1), id="slow only"),
            pytest.param(replace(STALLED, latency_seconds=None), id="writes fail"),
            pytest.param(replace(STALLED, reading=GOOD), id="over"),
            pytest.param(replace(STALLED, age_seconds=600.0), id="stale"),
            pytest.param(replace(STALLED, type=SignalType.READ_LATENCY), id="reads"),
        ],
    )
    def test_otherwise_kafka_is_given_its_time_to_fence_it(self, disk: Signal):
        found = self.judged(disk, self.GOES_ON)
        assert (found.state, found.reason) == self.WAITS

    def test_kafka_gets_its_time_where_metadata_log_directory_stalled(self):
        both = replace(self.GOES_ON, reading=BAD, latency_seconds=STALLED_SECONDS)
        assert self.judged(self.STALLED, both).reason is Reason.UNREACHABLE

    def test_a_broker_that_answers_inside_is_judged_by_its_listeners(self):
        answers = snapshot(None, *words(BAD, BAD), self.STALLED, self.GOES_ON)
        assert of_one(answers).reason is Reason.EXTERNALLY_UNREACHABLE

    def test_a_policy_that_ignores_disks_does_not_use_them(self):
        off = replace(ANY_POLICY, detection=Detection(storage_latency=StorageLatency(enabled=False)))
        assert self.judged(self.STALLED, self.GOES_ON, policy=off).reason is Reason.UNREACHABLE

    @pytest.mark.parametrize(
        "order",
        [
            pytest.param(ordered(), id="an active order"),
            pytest.param(replace(ordered(), ended_at=after(0), renewed_at=after(0)), id="ended just now"),
        ],
    )
    def test_broker_that_quarantine_may_hold_is_silent_because_of_it(self, order: QuarantineOrder):
        assert self.judged(self.STALLED, self.GOES_ON, orders=(order,)).reason is Reason.UNREACHABLE

    def test_neither_does_one_whose_agent_reports_that_it_holds_it(self):
        assert self.judged(self.STALLED, self.GOES_ON, agent(1, BAD, 1)).reason is Reason.UNREACHABLE

    def test_an_order_that_has_run_out_does_not_matter(self):
        old = replace(ordered(), ended_at=after(0), renewed_at=after(0) - RELEASE_AFTER)
        assert self.judged(self.STALLED, self.GOES_ON, orders=(old,)).reason is Reason.NOT_FENCED_IN_TIME


class TestTooFewVantages:
    """Unknown moves nothing; the message still says who fails by the rest, and what is missing."""

    GONE = tuple(replace(s, age_seconds=60.0) for s in words(GOOD, GOOD) if s.source == "b")

    def test_broker_failing_from_every_other_vantage_says_what_it_awaits(self):
        found = of_one(snapshot(None, *words(BAD), *self.GONE))
        assert (found.state, found.reason) == (HealthState.UNKNOWN, Reason.NO_EVIDENCE)
        assert_wording(found.message, found.change)
        assert found.failing_evidence

    def test_a_demoted_broker_stays_demoted_meanwhile(self):
        found = of_one(snapshot(None, *words(BAD), *self.GONE, undo=record(None, demoted(1))))
        assert_wording(found.message)

    def test_a_broker_that_the_rest_reaches_is_only_unknown(self):
        found = of_one(snapshot(None, *words(GOOD), *self.GONE))
        assert_wording(found.message)
        assert not found.failing_evidence

    def test_of_five_vantages_any_that_make_the_quorum_will_do(self):
        policy = Policy(name="main", detection=Detection(external_reachability=Reachability(vantages=tuple("abcde"))))
        found = of_one(snapshot(None, *words(BAD, GOOD)), policy)
        assert_wording(found.message)

    def test_vantage_that_has_failed_itself_is_not_prober_to_start(self):
        blind = [signal(b, BAD, source="b") for b in (1, 2, 3)]
        found = of_one(snapshot(None, *words(BAD), *blind))
        assert_wording(found.message, found.change)


class TestFewerThanTheQuorum:
    """A vantage that fails alone demotes no broker; the message says what the other vantages know."""

    def test_message_names_reaching_and_silent_vantages(self):
        policy = Policy(name="main", detection=Detection(external_reachability=Reachability(vantages=("a", "b", "c"))))
        found = of_one(snapshot(None, *words(BAD, GOOD)), policy)
        assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.VANTAGES_DISAGREE)
        assert_wording(found.message)

    def test_nothing_is_missing_where_all_report(self):
        assert_wording(of_one(snapshot(None, *words(BAD, GOOD))).message)


class TestLeaving:
    """An orderly shutdown: the load balancer has let go, the controller has taken the broker out of every ISR."""

    OUT = words(BAD, BAD)

    @staticmethod
    def gone(*partitions: Partition) -> Cluster:
        return cluster(*partitions)

    def test_broker_out_of_every_isr_is_leaving_not_sick(self):
        seen = self.gone(
            partition("orders", 0, (1, 2, 3), isr=(2, 3), leader=2),
            partition("orders", 1, (2, 1, 3), isr=(2, 3), leader=2),
        )
        found = of_one(snapshot(seen, *self.OUT), before=verdict(state=HealthState.HEALTHY))
        assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.RESTARTING)

    def test_a_broker_that_is_in_one_isr_still_is_sick(self):
        seen = self.gone(
            partition("orders", 0, (1, 2, 3), isr=(2, 3), leader=2),
            partition("orders", 1, (2, 1, 3), isr=(2, 1), leader=2),
        )
        assert of_one(snapshot(seen, *self.OUT)).reason is Reason.EXTERNALLY_UNREACHABLE

    def test_what_it_alone_keeps_does_not_matter(self):
        seen = self.gone(
            partition("orders", 0, (1, 2, 3), isr=(2, 3), leader=2), partition("orders", 1, (1,), isr=(1,), leader=1)
        )
        assert of_one(snapshot(seen, *self.OUT)).reason is Reason.RESTARTING

    def test_a_broker_that_keeps_everything_alone_is_sick(self):
        seen = self.gone(partition("orders", 0, (1,), isr=(1,), leader=1))
        assert of_one(snapshot(seen, *self.OUT)).reason is Reason.EXTERNALLY_UNREACHABLE

    def test_demoted_broker_that_falls_out_of_every_isr_stays_sick(self):
        seen = self.gone(partition("orders", 0, (2, 3, 1), isr=(2, 3), leader=2))
        undo = record(None, demoted(1))
        assert of_one(snapshot(seen, *self.OUT, undo=undo)).reason is Reason.EXTERNALLY_UNREACHABLE

    def test_it_is_down_once_no_vantage_reaches_it(self):
        seen = self.gone(partition("orders", 0, (1, 2, 3), isr=(2, 3), leader=2))
        nobody = words(BAD, BAD, control=Reading.FAILING)
        assert of_one(snapshot(seen, *nobody)).state is HealthState.DOWN


class TestDisputes:
    """A quorum fails and another vantage reaches the broker: two broken paths more often than a broken broker."""

    @staticmethod
    def lost(seconds: float, *readings: Reading, control: Reading = GOOD) -> list[Signal]:
        said = words(*(readings or (BAD, BAD, GOOD)), control=control)
        return [replace(s, harm=Harm(seconds, 0.9, after(0))) if s.reading is BAD else s for s in said]

    @pytest.mark.parametrize(
        ("lost", "reason"),
        [
            pytest.param(2.2, Reason.HARM_BELOW_COST, id="less than a move costs"),
            pytest.param(2.4, Reason.VANTAGE_CONFLICT, id="what a move costs"),
            pytest.param(9.2, Reason.VANTAGE_CONFLICT, id="less than four times that"),
            pytest.param(9.3, Reason.EXTERNALLY_UNREACHABLE, id="four times that"),
        ],
    )
    def test_a_dispute_raises_the_price_of_a_move(self, lost: float, reason: Reason):
        assert of_one(snapshot(None, *self.lost(lost))).reason is reason

    def test_without_a_dispute_the_price_is_that_of_a_move(self):
        assert of_one(snapshot(None, *self.lost(2.4, BAD, BAD, BAD))).state is HealthState.SICK

    @pytest.mark.parametrize("control", [BAD, DUNNO])
    def test_a_broker_that_one_vantage_reaches_is_not_down(self, control: Reading):
        found = of_one(snapshot(None, *self.lost(99.0, control=control)))
        assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.VANTAGE_CONFLICT)

    def test_only_vantage_that_fails_shows_that_broker_answers_inside(self):
        reach = signal(1, GOOD, source="c", control=GOOD)
        found = of_one(snapshot(None, *self.lost(99.0, BAD, BAD, control=BAD), reach))
        assert found.state is HealthState.SUSPECT

    def test_nor_is_one_that_was_sick_and_stops_answering_inside(self):
        before = verdict(reason=Reason.EXTERNALLY_UNREACHABLE)
        found = of_one(snapshot(None, *self.lost(99.0, control=BAD), now=after(1)), before=before)
        assert (found.state, found.reason, found.restarted) == (HealthState.SUSPECT, Reason.VANTAGE_CONFLICT, None)

    def test_who_is_sick_already_stays_so_while_a_quorum_fails(self):
        before = verdict(reason=Reason.EXTERNALLY_UNREACHABLE)
        assert of_one(snapshot(None, *self.lost(2.4), now=after(1)), before=before).state is HealthState.SICK

    def test_it_says_who_reaches_the_broker(self):
        found = of_one(snapshot(None, *self.lost(5.0)))
        assert_wording(found.message, found.change)

    def test_a_silent_vantage_disputes_nothing(self):
        assert of_one(snapshot(None, *words(BAD, BAD, DUNNO))).state is HealthState.SICK


class TestItsOwnSockets:
    """No client outside talks to the broker: a hint alone, and enough to make up for one silent vantage."""

    def own(self, *heard: Reading, age: float = 0.0) -> list[Signal]:
        kind = SignalType.SELF_REACHABILITY
        return [signal(b, r, kind=kind, source=f"broker-{b}", age_seconds=age) for b, r in enumerate(heard, 1)]

    def leading(self, *signals: Signal) -> Snapshot:
        return snapshot(cluster(partition(), partition(index=1, replicas=(2, 3, 1))), *signals)

    @pytest.mark.parametrize(
        ("heard", "state"),
        [
            pytest.param([BAD, GOOD, GOOD], HealthState.SUSPECT, id="its peers are talked to"),
            pytest.param([BAD, BAD, BAD], HealthState.HEALTHY, id="no traffic anywhere: a quiet night"),
            pytest.param([BAD, GOOD, BAD], HealthState.HEALTHY, id="half of its peers are not most of them"),
            pytest.param([GOOD, GOOD, GOOD], HealthState.HEALTHY, id="traffic everywhere"),
        ],
    )
    def test_alone_it_is_compared_with_peers_and_at_most_doubtful(self, heard: list[Reading], state: HealthState):
        assert of_one(self.leading(*self.own(*heard))).state is state

    def test_a_broker_that_leads_nothing_may_be_quiet(self):
        follows = snapshot(cluster(partition(replicas=(2, 1, 3))), *self.own(BAD, GOOD, GOOD))
        assert of_one(follows).state is HealthState.HEALTHY

    def test_vantages_that_reach_the_broker_know_better(self):
        assert of_one(self.leading(*words(GOOD, GOOD), *self.own(BAD, GOOD, GOOD))).state is HealthState.HEALTHY

    def test_it_makes_up_for_one_silent_vantage(self):
        found = of_one(self.leading(*words(BAD, DUNNO), *self.own(BAD, GOOD, GOOD)))
        assert (found.state, found.reason) == (HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE)
        assert_wording(found.message)

    def test_it_does_not_outvote_a_vantage_that_reaches_the_broker(self):
        found = of_one(self.leading(*words(BAD, GOOD), *self.own(BAD, GOOD, GOOD)))
        assert found.state is HealthState.SUSPECT

    def test_two_silent_vantages_are_too_many(self):
        found = of_one(self.leading(*words(DUNNO, DUNNO), *self.own(BAD, GOOD, GOOD)))
        assert found.state is HealthState.SUSPECT


class TestHarm:
    """What a quorum agrees on is weighed against the cost of a move."""

    @staticmethod
    def lost(*seconds: float) -> list[Signal]:
        by_vantage = dict(zip("abc", seconds, strict=False))
        made = words(*[BAD if lost else GOOD for lost in seconds])
        return [replace(s, harm=Harm(by_vantage[s.source], 1.0, s.since)) if s.reading is BAD else s for s in made]

    @pytest.mark.parametrize(
        ("seconds", "state", "reason"),
        [
            pytest.param([9, 1.5, 0], HealthState.SUSPECT, Reason.HARM_BELOW_COST, id="one vantage lost much"),
            pytest.param([9, 0.5, 0], HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="the second lost little"),
            pytest.param([9, 3, 3], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="two lost what a move costs"),
        ],
    )
    def test_a_quorum_agrees_on_the_least_of_the_largest(
        self, seconds: list[float], state: HealthState, reason: Reason
    ):
        found = of_one(snapshot(None, *self.lost(*seconds)))
        assert (found.state, found.reason) == (state, reason)

    def test_the_message_has_the_harm_and_the_cost(self):
        found = of_one(snapshot(None, *self.lost(9, 6.2, 7)))
        assert_wording(found.message)

    def test_figure_at_limit_of_counter_is_least_that_clients_lost(self):
        found = of_one(snapshot(None, *self.lost(600, 600, 600)))
        assert_wording(found.message)

    def test_a_broker_without_answers_is_down_only_after_equal_harm(self):
        short = [replace(s, control=BAD) for s in self.lost(1.5, 1.5)]
        long = [replace(s, control=BAD) for s in self.lost(3, 3)]
        assert of_one(snapshot(None, *short)).state is HealthState.SUSPECT
        assert of_one(snapshot(None, *long)).state is HealthState.DOWN
