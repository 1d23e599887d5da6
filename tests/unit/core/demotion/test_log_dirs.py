"""A broker with two log directories, one of which is slow: what moves, what stays, and what is unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.cli.diagnosis.explain import explanation
from bellwether.controllers.reporting.events import news
from bellwether.controllers.reporting.status import broker_status
from bellwether.core.demotion.decisions import decide_on_deletion
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.log_dirs import LogDir, LogDirCache, partitions_in
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.reporting.audit import begin_entry
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.settings.policy import Demotion, Mode, Policy, Promotion, PromotionMode
from bellwether.core.signals import OverrideState, Reading, SignalType
from bellwether.core.waves.rebalance_waves import WaveResult
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import signal, site

GOOD, BAD = Reading.PASSING, Reading.FAILING
FIRST, SECOND = "/data-0", "/data-1"
SLOW = LogDir(1, SECOND)
STABLE = 12


class Stage:
    """Brokers whose partitions lie half in each of two directories, and an operator."""

    def __init__(self, brokers: int = 3, policy: Policy = POLICY) -> None:
        self.site: MemorySite = site(brokers, {"orders": 4 * brokers})
        names = [p.name for p in self.site.cluster.partitions()]
        for broker in self.site.cluster.brokers:
            self.site.cluster.lay_out(broker, {FIRST: names[::2], SECOND: names[1::2]})
            self.site.signals.say(broker, GOOD)
            for path in (FIRST, SECOND):
                self.disk(path, GOOD, broker)
                self.disk(path, GOOD, broker, SignalType.READ_LATENCY)
        self.home = self.orders()
        self.operator = Operator(self.site, policy)
        self.operator.reconciles(2)

    def disk(self, path: str, reading: Reading, broker: int = 1, kind: SignalType = SignalType.STORAGE_LATENCY) -> None:
        source = f"disk-{broker}-{path[-1]}"
        self.site.signals.say(broker, reading, type=kind, sources=[source], directory=path)

    def turn(self, count: int = 2) -> None:
        self.operator.reconciles(count)

    def orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {p.name: p.replicas for p in self.site.cluster.partitions()}

    def led(self, broker: int = 1) -> set[TopicPartition]:
        return {p.name for p in self.site.cluster.partitions() if p.leader == broker}

    def in_slow(self, broker: int = 1) -> set[TopicPartition]:
        return set(self.site.cluster.log_dirs(broker)[SECOND])

    def report(self, broker: int = 1) -> BrokerReport:
        return next(b for b in self.operator.reports[-1].brokers if b.broker == broker)

    def demoted(self) -> set[LogDir]:
        assert self.operator.memory is not None
        return set(self.operator.memory.record.log_dirs)


def test_only_partitions_in_slow_directory_are_led_by_others():
    stage = Stage()
    led = stage.led()
    stage.disk(SECOND, BAD)
    stage.turn()
    assert stage.demoted() == {SLOW}
    assert stage.led() == led - stage.in_slow()
    assert stage.report().verdict.state is HealthState.SUSPECT
    moved = {name for name, order in stage.orders().items() if order != stage.home[name]}
    assert moved <= stage.in_slow()
    assert all(stage.orders()[name][-1] == 1 for name in stage.in_slow())


def test_the_status_says_which_directory_and_how_many_partitions():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    (found,) = stage.report().log_dirs
    assert (found.demoted.log_dir, found.partitions, found.demoted.reason) == (SLOW, 6, Reason.LOG_DIR_SLOW)
    condition = stage.report().condition("Demoted")
    assert (condition.status, condition.reason) == (False, Reason.LOG_DIR_SLOW)
    assert_wording(condition.message)


def test_everything_returns_once_the_directory_was_fast_for_long_enough():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.disk(SECOND, GOOD)
    stage.turn(5)
    assert stage.demoted() == {SLOW}
    stage.turn(STABLE)
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)
    stage.turn(30)
    assert stage.operator.memory is not None
    assert stage.operator.memory.record.empty


def test_people_see_it_as_events_audit_entry_and_status():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    before, now = stage.operator.reports[-2:]
    noted = {one.reason: one.message for one in news(None, now) if one.broker == 1}
    assert_wording(noted["LogDirDemoted"])
    assert "LogDirDemoted" not in {one.reason for one in news(now, now)}
    entry = begin_entry(
        Context(Snapshot(before.now, stage.site.cluster.snapshot(), UndoRecord("c")), {}, POLICY),
        UndoRecord("c"),
        now.plan,
        WaveResult(UndoRecord("c")),
    )
    assert entry is not None
    ((change,), reason) = entry.changes, Reason.LOG_DIR_SLOW
    assert (change.broker, change.demoted, change.word, change.reason) == (1, True, "signals", reason)
    status = broker_status(stage.report(), None, {}, now.now)
    (one,) = status["demotedLogDirs"]
    assert (one["directory"], one["partitions"], one["reason"]) == (SECOND, 6, "LogDirSlow")
    body = api_objects.health(1)
    lines = "\n".join(explanation(BrokerHealth.read({**body, "status": status}), now.now, {}))
    assert f"Log directory {SECOND} is demoted" in lines
    assert "6 partitions lie in it." in lines
    stage.disk(SECOND, GOOD)
    stage.turn(STABLE)
    restored = {one.reason for report in stage.operator.reports[-STABLE:] for one in news(now, report)}
    assert "LogDirPromoted" in restored


def test_all_directories_being_slow_demotes_the_broker():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.disk(FIRST, BAD)
    stage.turn()
    assert (stage.demoted(), stage.led()) == (set(), set())
    assert stage.report().demoted is not None
    stage.disk(FIRST, GOOD)
    stage.turn(STABLE)
    assert stage.report().demoted is not None, "it stays demoted until all of its directories are fast"
    stage.disk(SECOND, GOOD)
    stage.turn(STABLE)
    assert (stage.report().demoted, stage.orders()) == (None, stage.home)


def test_without_an_answer_nothing_moves_and_the_status_says_so():
    stage = Stage()
    stage.operator.memory = replace(stage.operator.memory, log_dirs=LogDirCache())  # type: ignore[type-var]
    stage.operator.world = replace(stage.operator.world, log_dirs=None)
    stage.disk(SECOND, BAD)
    stage.turn(20)
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)
    hold = stage.report().hold
    assert hold is not None
    assert hold.reason is Reason.NO_EVIDENCE
    assert "has not answered DescribeLogDirs" in hold.message


def test_a_path_that_the_broker_does_not_have_moves_nothing():
    stage = Stage()
    for kind in (SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY):
        stage.site.signals.clear(1, kind)
    for path, reading in (("/mnt/a", GOOD), ("/mnt/b", BAD)):
        stage.disk(path, reading)
    stage.turn(5)
    assert stage.orders() == stage.home
    hold = stage.report().hold
    assert hold is not None
    assert_wording(hold.message)


def test_next_process_keeps_what_was_moved_from_silent_broker():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    before = stage.orders()
    stage.operator = Operator(stage.site, identity="operator-b")
    stage.operator.world = replace(stage.operator.world, log_dirs=None)
    stage.site.clock.advance(20)
    stage.turn(5)
    assert (stage.orders(), stage.demoted()) == (before, {SLOW})
    stage.disk(SECOND, GOOD)
    stage.turn(STABLE)
    assert (stage.orders(), stage.demoted()) == (stage.home, set())


@pytest.mark.parametrize("kind", [SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY])
def test_a_silent_probe_does_not_end_a_demotion(kind: SignalType):
    stage = Stage()
    stage.disk(SECOND, BAD, kind=kind)
    stage.turn()
    assert stage.demoted() == {SLOW}
    stage.site.signals.silence("disk-1-1")
    stage.turn(60)
    assert stage.demoted() == {SLOW}


class TestRecovery:
    """A directory recovers as a broker does: by seconds that are known to be good."""

    def recovering(self, seconds: int = 10) -> Stage:
        stage = Stage(policy=replace(POLICY, promotion=replace(POLICY.promotion, stabilization_seconds=seconds)))
        stage.disk(SECOND, BAD)
        stage.turn()
        stage.disk(SECOND, GOOD)
        return stage

    def reported_since(self, stage: Stage, seconds: float) -> None:
        """Its prober's clock differs by so much."""
        for said in stage.site.signals.signals():
            if said.source == "disk-1-1":
                stage.site.signals.put(replace(said, since=said.since + timedelta(seconds=seconds)))

    @pytest.mark.parametrize("seconds", [-60, 3600])
    def test_the_clock_of_the_prober_decides_nothing(self, seconds: float):
        stage = self.recovering()
        self.reported_since(stage, seconds)
        stage.turn(10)
        assert stage.demoted() == {SLOW}
        stage.turn(2)
        assert stage.demoted() == set()

    def test_time_in_which_its_prober_is_silent_does_not_count(self):
        stage = self.recovering(30)
        stage.turn(3)
        stage.site.signals.silence("disk-1-1")
        stage.turn(60)
        stage.site.signals.resume("disk-1-1")
        stage.turn(15)
        assert stage.demoted() == {SLOW}
        stage.turn(15)
        assert stage.demoted() == set()

    def test_a_failure_between_two_reads_starts_the_wait_again(self):
        stage = self.recovering()
        stage.turn(9)
        self.reported_since(stage, 5)
        stage.turn(9)
        assert stage.demoted() == {SLOW}

    def test_the_signal_that_demoted_it_must_pass_and_not_another(self):
        stage = Stage()
        stage.disk(SECOND, BAD, kind=SignalType.READ_LATENCY)
        stage.turn()
        stage.site.signals.clear(1, SignalType.READ_LATENCY)
        stage.turn(3 * STABLE)
        assert stage.demoted() == {SLOW}

    def test_one_that_flaps_must_be_good_for_longer(self):
        stage = self.recovering()
        stage.turn(STABLE)
        assert stage.demoted() == set()
        stage.disk(SECOND, BAD)
        stage.turn()
        stage.disk(SECOND, GOOD)
        stage.turn(STABLE)
        assert stage.demoted() == {SLOW}
        stage.turn(STABLE)
        assert stage.demoted() == set()


def test_reads_and_writes_must_both_be_fast_again():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.disk(SECOND, BAD, kind=SignalType.READ_LATENCY)
    stage.turn()
    stage.disk(SECOND, GOOD)
    stage.turn(STABLE)
    assert stage.demoted() == {SLOW}
    stage.disk(SECOND, GOOD, kind=SignalType.READ_LATENCY)
    stage.turn(STABLE)
    assert stage.demoted() == set()


def test_directories_of_half_of_the_brokers_have_a_shared_cause():
    stage = Stage(4)
    for broker in (1, 2):
        stage.disk(SECOND, BAD, broker)
    stage.turn()
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)
    hold = stage.report().hold
    assert hold is not None
    assert hold.reason is Reason.SYSTEMIC_CAUSE


def test_a_directory_needs_room_in_the_cap_and_takes_none_from_a_sick_broker():
    stage = Stage(7, replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=1)))
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.disk(SECOND, BAD, 2)
    stage.turn()
    assert stage.demoted() == {SLOW}
    hold = stage.report(2).hold
    assert hold is not None
    assert hold.reason is Reason.CAP_REACHED
    stage.site.signals.say(3, BAD)
    stage.turn()
    assert stage.report(3).demoted is not None
    assert stage.demoted() == {SLOW}


def test_a_directory_is_demoted_after_the_dwell_time():
    stage = Stage(policy=replace(POLICY, demotion=Demotion(dwell_seconds=10)))
    stage.disk(SECOND, BAD)
    stage.turn(6)
    assert stage.demoted() == set()
    assert stage.report().condition("Demoted").reason is Reason.DWELL_PENDING
    stage.turn(8)
    assert stage.demoted() == {SLOW}


def test_promote_override_ends_it_and_demote_takes_whole_broker():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.site.signals.override(1, OverrideState.PROMOTED)
    stage.turn()
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)
    stage.site.signals.override(1, OverrideState.DEMOTED)
    stage.turn()
    assert stage.led() == set()
    stage.site.signals.lift(1)
    stage.turn(STABLE)
    demoted = stage.report().demoted
    assert demoted is not None
    assert demoted.cause is Cause.SIGNALS, "the override ended while the directory is slow"


def test_manual_promotion_waits_for_a_person():
    stage = Stage(policy=replace(POLICY, promotion=Promotion(mode=PromotionMode.MANUAL, stabilization_seconds=5)))
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.disk(SECOND, GOOD)
    stage.turn(20)
    assert stage.demoted() == {SLOW}
    hold = stage.report().hold
    assert hold is not None
    assert hold.reason is Reason.PROMOTION_MANUAL


def test_observing_policy_says_what_it_would_do_and_moves_nothing():
    stage = Stage(policy=replace(POLICY, mode=Mode.OBSERVE))
    stage.disk(SECOND, BAD)
    stage.turn()
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)
    assert_wording(stage.report().condition("Demoted").message)


def test_deletion_of_policy_restores_what_is_not_known_slow():
    stage = Stage()
    stage.disk(SECOND, BAD)
    stage.turn()
    stage.operator.reconcile(decide_on_deletion)
    assert stage.demoted() == {SLOW}
    stage.disk(SECOND, GOOD)
    stage.operator.reconcile(decide_on_deletion)
    assert (stage.demoted(), stage.orders()) == (set(), stage.home)


def test_probes_that_name_no_directory_judge_broker_as_whole():
    stage = Stage()
    stage.site.signals.clear(1, SignalType.STORAGE_LATENCY)
    for number, reading in enumerate((GOOD, BAD)):
        stage.site.signals.say(1, reading, type=SignalType.STORAGE_LATENCY, sources=[f"disk-1-{number}"])
    stage.turn()
    assert stage.report().demoted is not None


class TestPartitionsIn:
    A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)

    def test_a_volume_has_what_its_log_directories_have(self):
        placement = {"/mnt/a/logs": frozenset({self.A}), "/mnt/ab": frozenset({self.B})}
        assert partitions_in("/mnt/a", placement) == {self.A}
        assert partitions_in("/mnt/a/", placement) == {self.A}
        assert partitions_in("/mnt/ab", placement) == {self.B}
        assert partitions_in("/mnt/c", placement) is None


class TestCache:
    def test_only_brokers_with_several_directories_are_asked_failing_first(self):
        disks = [
            replace(signal(b, reading, kind=SignalType.STORAGE_LATENCY, source=f"{b}{path}"), directory=path)
            for b, paths in {1: (FIRST,), 2: (FIRST, SECOND), 3: (FIRST, SECOND)}.items()
            for path in paths
            for reading in [BAD if b == 3 else GOOD]
        ]
        live = {1, 2, 3}
        assert LogDirCache().due(disks, live, 0) == [3, 2]
        known = LogDirCache().after(2, {FIRST: frozenset()}, 0).after(3, None, 0)
        assert known.due(disks, live, 29) == []
        assert known.due(disks, live, 30) == [3]
        assert known.due(disks, live, 300) == [3, 2]
        assert known.due(disks, {1, 2}, 300) == [2]

    def test_no_answer_leaves_the_last_one(self):
        known = LogDirCache().after(2, {FIRST: frozenset()}, 0).after(2, None, 400)
        assert known.placements == {2: {FIRST: frozenset()}}
