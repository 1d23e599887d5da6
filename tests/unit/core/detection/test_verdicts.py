"""What signals add up to: every row of the tables is a story that an on-call engineer could be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from bellwether.core.detection.findings import quorum
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.harm_history import HarmCause
from bellwether.core.model.known_good import KnownGood
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, Reachability, StorageLatency
from bellwether.core.settings.policy import Policy, Promotion
from bellwether.core.signals import Harm, OverrideState, Reading, Signal, SignalType
from testkit.values.builders import after, cluster, demoted, override, partition, record, signal, snapshot, verdict
from testkit.values.quarantine_inputs import NOW, ordered
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, POLICY, of_one, words

STALE = POLICY.detection.reachability.stale_after_seconds + 0.1


def storage(reading: Reading, age: float | None = 0.0, message: str = "", broker: int = 1) -> Signal:
    made = signal(
        broker, reading, kind=SignalType.STORAGE_LATENCY, source=f"disk-{broker}", control=DUNNO, age_seconds=age
    )
    return replace(made, message=message)


@pytest.mark.parametrize(
    ("vantages", "needed"),
    [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (16, 9)],
)
def test_a_quorum_is_a_majority_and_two_where_two_exist(vantages: int, needed: int):
    if vantages:
        assert quorum(vantages) == needed


@pytest.mark.parametrize(
    ("readings", "state", "reason"),
    [
        pytest.param([GOOD], HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="the only vantage reaches it"),
        pytest.param([BAD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="the only vantage does not"),
        pytest.param([DUNNO], HealthState.UNKNOWN, Reason.NO_EVIDENCE, id="the only vantage does not know"),
        pytest.param([BAD, BAD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="both of two"),
        pytest.param([BAD, GOOD], HealthState.SUSPECT, Reason.VANTAGES_DISAGREE, id="one of two"),
        pytest.param([BAD, DUNNO], HealthState.UNKNOWN, Reason.NO_EVIDENCE, id="one of two, the other is blank"),
        pytest.param([GOOD, DUNNO], HealthState.UNKNOWN, Reason.NO_EVIDENCE, id="one of two well, the other blank"),
        pytest.param([BAD, BAD, BAD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="all three"),
        pytest.param(
            [BAD, BAD, GOOD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="two of three, without figures"
        ),
        pytest.param([BAD, GOOD, GOOD], HealthState.SUSPECT, Reason.VANTAGES_DISAGREE, id="one of three"),
        pytest.param([BAD, BAD, DUNNO], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="two of three, one blank"),
        pytest.param(
            [GOOD, GOOD, DUNNO], HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="two of three well, one blank"
        ),
        pytest.param([BAD, DUNNO, DUNNO], HealthState.UNKNOWN, Reason.NO_EVIDENCE, id="one of three, the rest blank"),
        pytest.param([BAD, BAD, GOOD, GOOD], HealthState.SUSPECT, Reason.VANTAGES_DISAGREE, id="two of four are none"),
    ],
)
def test_vantages_count_by_quorum(readings: list[Reading], state: HealthState, reason: Reason):
    found = of_one(snapshot(None, *words(*readings)))
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("configured", "said", "state"),
    [
        pytest.param(("a", "b"), [BAD], HealthState.UNKNOWN, id="a configured vantage that never spoke is missed"),
        pytest.param(("a", "b", "c"), [BAD, BAD], HealthState.SICK, id="two of three configured are enough"),
        pytest.param(("b",), [BAD, GOOD], HealthState.HEALTHY, id="a vantage that is not configured says nothing"),
        pytest.param(("x", "y"), [], HealthState.UNKNOWN, id="nobody has spoken"),
    ],
)
def test_configured_vantages_are_those_that_count(configured: tuple[str, ...], said: list[Reading], state: HealthState):
    policy = replace(POLICY, detection=Detection(reachability=Reachability(vantages=configured)))
    assert of_one(snapshot(None, *words(*said)), policy).state is state


@pytest.mark.parametrize(
    ("age", "state"),
    [
        pytest.param(0.0, HealthState.SICK, id="fresh"),
        pytest.param(POLICY.detection.reachability.stale_after_seconds, HealthState.SICK, id="just fresh"),
        pytest.param(STALE, HealthState.UNKNOWN, id="stale"),
        pytest.param(None, HealthState.UNKNOWN, id="its prober was never seen alive"),
    ],
)
def test_stale_evidence_is_none(age: float | None, state: HealthState):
    assert of_one(snapshot(None, *words(BAD, BAD, age=age))).state is state


def test_a_vantage_that_sees_every_broker_down_has_itself_failed():
    blind = [signal(b, BAD, source="a") for b in (1, 2, 3)]
    seeing = [signal(b, GOOD, source="b") for b in (1, 2, 3)]
    found = judge(snapshot(None, *blind, *seeing), POLICY, {})
    assert {v.state for v in found.values()} == {HealthState.UNKNOWN}


def test_the_only_broker_of_a_cluster_can_be_seen_down_by_a_vantage_that_sees():
    alone = cluster(partition(replicas=[1]), brokers=1)
    assert of_one(snapshot(alone, signal(1, BAD))).state is HealthState.SICK


def test_a_dead_broker_does_not_keep_a_vantage_from_being_blind():
    living = cluster(partition(), brokers=[2, 3])
    blind = [signal(b, BAD, source="a") for b in (2, 3)]
    found = judge(snapshot(living, signal(1, GOOD, source="a"), *blind), POLICY, {})
    assert found[2].state is HealthState.UNKNOWN


@pytest.mark.parametrize(
    ("controls", "state", "reason"),
    [
        pytest.param([GOOD, GOOD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="inside it answers both"),
        pytest.param([GOOD, BAD], HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="inside it answers one"),
        pytest.param([BAD, BAD], HealthState.DOWN, Reason.UNREACHABLE, id="inside it answers neither"),
        pytest.param([BAD, DUNNO], HealthState.DOWN, Reason.UNREACHABLE, id="one asked, in vain"),
        pytest.param([DUNNO, DUNNO], HealthState.SUSPECT, Reason.UNREACHABLE, id="nobody could ask inside"),
    ],
)
def test_the_internal_listener_is_the_control(controls: Sequence[Reading], state: HealthState, reason: Reason):
    said = [signal(1, BAD, source=s, control=c) for s, c in zip("ab", controls, strict=True)]
    others = [signal(b, GOOD, source=s) for s in "ab" for b in (2, 3)]
    found = of_one(snapshot(None, *said, *others))
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize("control", [pytest.param(BAD, id="silent inside"), pytest.param(DUNNO, id="not asked inside")])
@pytest.mark.parametrize(
    ("waited", "reason"),
    [
        pytest.param(13.4, None, id="before it must be fenced"),
        pytest.param(13.5, Reason.NOT_FENCED_IN_TIME, id="half a session later than its end"),
        pytest.param(60.0, Reason.NOT_FENCED_IN_TIME, id="long since"),
    ],
)
def test_a_broker_that_kafka_does_not_fence_in_time_is_sick(control: Reading, waited: float, reason: Reason | None):
    first = of_one(snapshot(None, *words(BAD, BAD, control=control)))
    found = of_one(snapshot(None, *words(BAD, BAD, control=control), now=after(waited)), before=first)
    assert found.reason is (reason or first.reason)
    assert (found.state is HealthState.SICK) is (reason is not None)
    assert found.since == (after(waited) if reason else first.since)


def test_still_unfenced_stands_while_the_failure_does():
    before = verdict(reason=Reason.NOT_FENCED_IN_TIME, since=after(0))
    found = of_one(snapshot(None, *words(BAD, BAD, control=BAD), now=after(1)), before=before)
    assert (found.state, found.reason, found.since) == (HealthState.SICK, Reason.NOT_FENCED_IN_TIME, after(0))
    assert found.message == (
        "unreachable from a, b (2 of 2 vantages), and its internal listener fails; not fenced within 13.5 s"
    )


def test_silence_that_another_reason_preceded_starts_its_own_patience():
    before = verdict(state=HealthState.SUSPECT, since=after(-100))
    assert of_one(snapshot(None, *words(BAD, BAD, control=BAD)), before=before).reason is Reason.UNREACHABLE


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        pytest.param(cluster(partition(isr=[2, 3]), brokers=[2, 3]), Reason.BROKER_DOWN, id="gone from metadata"),
        pytest.param(cluster(partition(), fenced=[1]), Reason.BROKER_DOWN, id="fenced"),
    ],
)
def test_metadata_outweighs_every_signal(seen, reason: Reason):
    found = of_one(snapshot(seen, *words(GOOD, GOOD)))
    assert (found.state, found.reason) == (HealthState.DOWN, reason)


@pytest.mark.parametrize(
    ("external", "disk", "state", "reason"),
    [
        pytest.param([GOOD, GOOD], BAD, HealthState.SICK, Reason.STORAGE_SLOW, id="only the disk is slow"),
        pytest.param([BAD, BAD], BAD, HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, id="unreachable is the worse"),
        pytest.param([], BAD, HealthState.SICK, Reason.STORAGE_SLOW, id="no vantage at all"),
        pytest.param([], GOOD, HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="no vantage, a good disk"),
        pytest.param([GOOD, GOOD], DUNNO, HealthState.UNKNOWN, Reason.NO_EVIDENCE, id="the disk's prober is blank"),
        pytest.param([BAD, GOOD], BAD, HealthState.SICK, Reason.STORAGE_SLOW, id="suspect outside, sick within"),
        pytest.param([GOOD, GOOD], GOOD, HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="all is well"),
    ],
)
def test_the_worst_kind_of_evidence_makes_the_verdict(
    external: list[Reading], disk: Reading, state: HealthState, reason: Reason
):
    found = of_one(snapshot(None, *words(*external), storage(disk), storage(GOOD, broker=2)))
    assert (found.state, found.reason) == (state, reason)


def test_a_slow_disk_says_how_slow_in_its_probers_words():
    found = of_one(snapshot(None, storage(BAD, message="7 of 10 writes above 50 ms"), storage(GOOD, broker=2)))
    assert found.message.startswith("its log directory is slow: 7 of 10 writes above 50 ms; moving its leaders")


def test_a_storage_prober_that_has_gone_silent_is_not_a_slow_disk():
    assert of_one(snapshot(None, storage(BAD, age=STALE))).state is HealthState.UNKNOWN


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        pytest.param(
            replace(POLICY, detection=Detection(reachability=Reachability(enabled=False))),
            HealthState.HEALTHY,
            id="no reachability",
        ),
        pytest.param(
            replace(POLICY, detection=Detection(storage=StorageLatency(enabled=False))),
            HealthState.SICK,
            id="no storage",
        ),
    ],
)
def test_a_kind_that_is_switched_off_is_not_judged(policy: Policy, state: HealthState):
    assert of_one(snapshot(None, *words(BAD, BAD), storage(GOOD)), policy).state is state


def test_nobody_has_reported_is_unknown():
    assert of_one(snapshot()).reason is Reason.NO_EVIDENCE


def test_everybody_whom_metadata_or_a_replica_list_names_is_judged():
    assert set(judge(snapshot(cluster(partition(replicas=[1, 9]), brokers=[1, 2])), POLICY, {})) == {1, 2, 9}


@pytest.mark.parametrize("state", OverrideState)
def test_a_persons_override_does_not_change_what_is_true(state: OverrideState):
    bare = of_one(snapshot(None, *words(BAD, BAD)))
    assert of_one(snapshot(None, *words(BAD, BAD), overrides=[override(1, state)])) == bare


class TestStabilization:
    SICK = record(None, demoted(1))

    def judged(self, seconds: float, before: Verdict | None, *readings: Reading, wait: int = 60) -> Verdict:
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=wait))
        return of_one(snapshot(None, *words(*readings), now=after(seconds), undo=self.SICK), policy, before)

    def well(self, seconds: Iterable[float], before: Verdict | None) -> Verdict:
        """Its verdict after good reads at these times."""
        for at in seconds:
            before = self.judged(at, before, GOOD, GOOD)
        assert before is not None
        return before

    def test_a_demoted_broker_must_stay_well_before_it_is_healthy(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        assert (first.state, first.since) == (HealthState.RECOVERING, after(10))
        waiting = self.well([20, 30, 40, 50, 60, 69.9], first)
        assert (waiting.state, waiting.since) == (HealthState.RECOVERING, after(10))
        assert self.judged(70, waiting, GOOD, GOOD).state is HealthState.HEALTHY

    def test_between_two_reads_no_more_counts_than_a_signal_stays_fresh(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        assert self.judged(3600, first, GOOD, GOOD).known_good.seconds == 10

    def test_a_relapse_starts_the_wait_anew(self):
        first = self.judged(10, verdict(), GOOD, GOOD)
        relapse = self.judged(60, first, BAD, BAD)
        assert relapse.state is HealthState.SICK
        assert self.judged(80, relapse, GOOD, GOOD).since == after(80)

    @pytest.mark.parametrize("silence", [2, 3600])
    def test_only_seconds_between_two_good_reads_count(self, silence: float):
        first = self.well([10, 20], verdict())
        gap = self.judged(25, first, DUNNO, DUNNO)
        assert (gap.state, gap.known_good.seconds, gap.known_state) == (HealthState.UNKNOWN, 10, HealthState.RECOVERING)
        again = self.well([25 + silence, 34 + silence], gap)
        assert (again.state, again.known_good.seconds) == (HealthState.RECOVERING, 19)

    def test_a_clock_that_was_set_back_changes_nothing(self):
        assert self.well([10, 15, -3600, -3595], verdict()).known_good.seconds == 10

    def test_another_process_goes_on_from_the_seconds_that_are_known(self):
        reported = replace(verdict(state=HealthState.RECOVERING), known_good=KnownGood(48.0))
        assert self.judged(3600, reported, GOOD, GOOD).known_good.seconds == 48
        assert self.well([3600, 3610], reported).state is HealthState.RECOVERING
        assert self.well([3600, 3610, 3612], reported).state is HealthState.HEALTHY

    def test_a_first_read_without_fresh_evidence_hides_no_failure(self):
        known = self.well([10, 20], verdict())
        reported = replace(known, known_good=replace(known.known_good, read_at=None))
        blipped = [replace(s, since=after(90), age_seconds=None) for s in words(GOOD, GOOD)]
        cold = of_one(snapshot(None, *blipped, now=after(100), undo=self.SICK), POLICY, reported)
        assert (cold.state, cold.known_good.seconds) == (HealthState.UNKNOWN, 0)

    def test_a_failure_while_its_source_was_gone_starts_the_wait_again(self):
        gone = self.judged(25, self.well([10, 20], verdict()))
        blipped = [replace(s, since=after(26)) for s in words(GOOD, GOOD)]
        assert of_one(snapshot(None, *blipped, now=after(30), undo=self.SICK), POLICY, gone).known_good.seconds == 0

    def test_a_healthy_verdict_from_before_the_demotion_does_not_count(self):
        self.SICK = record(None, demoted(1, since=after(5)))
        former = verdict(state=HealthState.HEALTHY, since=after(0))
        found = self.judged(6, former, GOOD, GOOD)
        assert (found.state, found.since) == (HealthState.RECOVERING, after(6))

    def test_recovering_from_before_the_demotion_does_not_count(self):
        self.SICK = record(None, demoted(1, since=after(5)))
        former = replace(verdict(state=HealthState.RECOVERING, since=after(-60)), known_good=KnownGood(60.0))
        found = self.judged(6, former, GOOD, GOOD)
        assert (found.since, found.known_good.seconds) == (after(6), 0)

    def test_a_broker_that_a_person_demoted_while_it_was_healthy_stays_healthy(self):
        self.SICK = record(None, demoted(1, Cause.OVERRIDE, since=after(5)))
        former = verdict(state=HealthState.HEALTHY, since=after(0))
        assert self.judged(6, former, GOOD, GOOD).state is HealthState.HEALTHY

    @pytest.mark.parametrize("cause", [Cause.SIGNALS, Cause.MAINTENANCE])
    def test_a_failure_between_two_reconciles_starts_the_wait_again(self, cause: Cause):
        self.SICK = record(None, demoted(1, cause))
        first = self.judged(10, verdict(), GOOD, GOOD)
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=60))
        blipped = [replace(s, since=after(30)) if s.source == "b" else s for s in words(GOOD, GOOD)]
        found = of_one(snapshot(None, *blipped, now=after(70), undo=self.SICK), policy, first)
        assert (found.state, found.since) == (HealthState.RECOVERING, after(70))

    def test_a_failure_between_two_reconciles_does_not_change_a_broker_that_was_never_demoted(self):
        first = of_one(snapshot(None, *words(GOOD, GOOD), now=after(10)))
        blipped = [replace(s, since=after(30)) if s.source == "b" else s for s in words(GOOD, GOOD)]
        found = of_one(snapshot(None, *blipped, now=after(70)), before=first)
        assert (found.state, found.since) == (HealthState.HEALTHY, after(10))

    def test_a_failure_in_between_is_not_read_from_the_clock_of_the_prober(self):
        ahead = [replace(s, since=after(9999)) for s in words(GOOD, GOOD)]
        policy = replace(POLICY, promotion=Promotion(stabilization_seconds=60))
        found = verdict()
        for at in range(10, 71, 10):
            found = of_one(snapshot(None, *ahead, now=after(at), undo=self.SICK), policy, found)
        assert found.state is HealthState.HEALTHY

    def test_who_was_healthy_already_stays_so(self):
        well = verdict(state=HealthState.HEALTHY)
        assert self.judged(1, well, GOOD, GOOD).state is HealthState.HEALTHY

    def test_who_was_never_demoted_is_healthy_at_once(self):
        assert of_one(snapshot(None, *words(GOOD, GOOD)), before=verdict()).state is HealthState.HEALTHY

    def test_the_message_says_how_long(self):
        assert "promoted after 60 s with fresh, passing signals" in self.judged(10, None, GOOD, GOOD).message


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param(None, after(5), id="the first verdict"),
        pytest.param(verdict(since=after(-7)), after(-7), id="the same state and reason"),
        pytest.param(verdict(reason=Reason.STORAGE_SLOW, since=after(-7)), after(5), id="another reason"),
        pytest.param(verdict(state=HealthState.HEALTHY, since=after(-7)), after(5), id="another state"),
    ],
)
def test_a_verdict_keeps_its_since_while_it_stands(before: Verdict | None, since):
    assert of_one(snapshot(None, *words(BAD, BAD), now=after(5)), before=before).since == since


def test_harm_is_noticed_once_however_long_it_lasts():
    found = of_one(snapshot(None, *words(BAD, BAD), now=after(5)), before=verdict(state=HealthState.HEALTHY))
    for seconds in (6, 60):
        found = of_one(snapshot(None, *words(BAD, BAD), now=after(seconds)), before=found)
    assert found.noticed == after(5)


def test_the_same_news_makes_the_same_verdict_whatever_its_age():
    first = of_one(snapshot(None, *words(BAD, BAD, age=0.1)))
    assert of_one(snapshot(None, *words(BAD, BAD, age=3.7), now=after(4)), before=first) == first


class TestWhatDemotedABrokerMustBeSeenToBeWell:
    """That its evidence has vanished does not promote it (invariant 5)."""

    def test_a_slow_disk_of_which_nothing_is_heard_any_more_is_unknown(self):
        undo = record(None, replace(demoted(1), reason=Reason.STORAGE_SLOW))
        found = of_one(snapshot(cluster(partition()), *words(GOOD, GOOD), undo=undo))
        assert (found.state, found.reason) == (HealthState.UNKNOWN, Reason.NO_EVIDENCE)

    def test_an_unreachable_broker_of_which_no_vantage_speaks_any_more_is_unknown(self):
        undo = record(None, replace(demoted(1), reason=Reason.EXTERNALLY_UNREACHABLE))
        found = of_one(snapshot(cluster(partition()), *[storage(GOOD)], undo=undo))
        assert found.state is HealthState.UNKNOWN

    def test_a_person_who_switches_the_probe_off_is_believed(self):
        undo = record(None, replace(demoted(1), reason=Reason.STORAGE_SLOW))
        blind = replace(POLICY, detection=Detection(storage=StorageLatency(enabled=False)))
        assert (
            of_one(snapshot(cluster(partition()), *words(GOOD, GOOD), undo=undo), blind).state is HealthState.RECOVERING
        )


class TestAShortSilence:
    """As after a take-over: what stood before it is carried on."""

    def before(self) -> Verdict:
        return verdict(1, HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, since=after(-100))

    def test_the_sick_stay_sick_since_then(self):
        silent = of_one(snapshot(cluster(partition()), now=after(0)), before=self.before())
        assert (silent.state, silent.since) == (HealthState.UNKNOWN, after(0))
        again = of_one(snapshot(cluster(partition()), *words(BAD, BAD), now=after(4)), before=silent)
        assert (again.state, again.since) == (HealthState.SICK, after(-100))

    def test_a_long_silence_starts_the_time_anew(self):
        silent = of_one(snapshot(cluster(partition()), now=after(0)), before=self.before())
        again = of_one(snapshot(cluster(partition()), *words(BAD, BAD), now=after(31)), before=silent)
        assert again.since == after(31)


def test_the_patience_with_a_broker_that_answers_nobody_is_one_whether_or_not_the_control_says_so():
    seen, before = cluster(partition()), None
    for second in range(0, 20, 2):
        control = BAD if second % 4 else DUNNO
        before = of_one(snapshot(seen, *words(BAD, BAD, control=control), now=after(second)), before=before)
    assert before is not None
    assert (before.state, before.reason) == (HealthState.SICK, Reason.NOT_FENCED_IN_TIME)


class TestExplaining:
    """A verdict says what it was made of, what did not count, and what would change it."""

    def test_every_word_is_a_fact_and_says_why_it_did_not_count(self):
        policy = replace(POLICY, detection=Detection(reachability=Reachability(vantages=("a", "b", "c"))))
        blind = [signal(b, BAD, source="c") for b in (1, 2, 3)]
        found = of_one(snapshot(None, *words(BAD, BAD), *blind, signal(1, GOOD, source="zoo")), policy)
        why = {f.source: f.ignored_because for f in found.facts}
        assert why == {
            "a": "",
            "b": "",
            "c": "every broker fails from this vantage, so the vantage itself has failed",
            "zoo": "the policy does not name this vantage",
        }

    @pytest.mark.parametrize(
        ("signals", "change"),
        [
            (
                words(GOOD, GOOD),
                "2 of 2 vantages failing until probes have lost 2.3 s: moving its leaders away and back costs about 3"
                " s (assumed)",
            ),
            (words(BAD, BAD), "fewer than 2 of 2 vantages failing"),
            (words(BAD, DUNNO), "fresh evidence from 2 vantages: check the prober of b"),
            ([], "a prober reporting on it"),
        ],
    )
    def test_what_would_change_it(self, signals: list[Signal], change: str):
        assert of_one(snapshot(None, *signals)).change == change


@pytest.mark.parametrize("held", [True, False])
def test_the_fault_of_a_held_broker_goes_on_to_be_measured(held: bool):
    slow = replace(storage(BAD), harm=Harm(40.0, 1.0, NOW))
    facts = replace(
        snapshot(cluster(partition(), fenced=(1,)), slow, storage(GOOD, broker=2), storage(GOOD, broker=3)),
        quarantine_orders={1: ordered()} if held else {},
    )
    found = judge(facts, POLICY, {})[1]
    assert found.reason is Reason.BROKER_DOWN
    assert dict(found.harm)[HarmCause.STORAGE] == (40.0 if held else None)
