"""What signals add up to: every row of the tables is a story of an on-call engineer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.detection.findings import quorum
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, Reachability, StorageLatency
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, OverrideState, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, override, partition, record, signal, snapshot, verdict
from testkit.values.quarantine_inputs import NOW, ordered
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, POLICY, of_one, words

STALE = POLICY.detection.external_reachability.stale_after_seconds + 0.1


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
        pytest.param(("x", "y"), [], HealthState.UNKNOWN, id="no vantage has reported"),
    ],
)
def test_configured_vantages_are_those_that_count(configured: tuple[str, ...], said: list[Reading], state: HealthState):
    policy = replace(POLICY, detection=Detection(external_reachability=Reachability(vantages=configured)))
    assert of_one(snapshot(None, *words(*said)), policy).state is state


@pytest.mark.parametrize(
    ("age", "state"),
    [
        pytest.param(0.0, HealthState.SICK, id="fresh"),
        pytest.param(POLICY.detection.external_reachability.stale_after_seconds, HealthState.SICK, id="just fresh"),
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


def test_only_broker_of_cluster_can_be_seen_down():
    alone = cluster(partition(replicas=[1]), brokers=1)
    assert of_one(snapshot(alone, signal(1, BAD))).state is HealthState.SICK


def test_dead_broker_does_not_keep_vantage_from_being_blind():
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
        pytest.param([BAD, DUNNO], HealthState.DOWN, Reason.UNREACHABLE, id="one asked, without success"),
        pytest.param([DUNNO, DUNNO], HealthState.SUSPECT, Reason.UNREACHABLE, id="no vantage could ask inside"),
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
def test_broker_that_kafka_does_not_fence_in_time_is_sick(control: Reading, waited: float, reason: Reason | None):
    first = of_one(snapshot(None, *words(BAD, BAD, control=control)))
    found = of_one(snapshot(None, *words(BAD, BAD, control=control), now=after(waited)), before=first)
    assert found.reason is (reason or first.reason)
    assert (found.state is HealthState.SICK) is (reason is not None)
    assert found.since == (after(waited) if reason else first.since)


def test_not_fenced_in_time_stays_sick_while_the_failure_lasts():
    before = verdict(reason=Reason.NOT_FENCED_IN_TIME, since=after(0))
    found = of_one(snapshot(None, *words(BAD, BAD, control=BAD), now=after(1)), before=before)
    assert (found.state, found.reason, found.since) == (HealthState.SICK, Reason.NOT_FENCED_IN_TIME, after(0))
    assert_wording(found.message)


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
    assert_wording(found.message)


def test_storage_prober_that_has_gone_silent_is_not_slow_disk():
    assert of_one(snapshot(None, storage(BAD, age=STALE))).state is HealthState.UNKNOWN


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        pytest.param(
            replace(POLICY, detection=Detection(external_reachability=Reachability(enabled=False))),
            HealthState.HEALTHY,
            id="no reachability",
        ),
        pytest.param(
            replace(POLICY, detection=Detection(storage_latency=StorageLatency(enabled=False))),
            HealthState.SICK,
            id="no storage",
        ),
    ],
)
def test_a_kind_that_is_switched_off_is_not_judged(policy: Policy, state: HealthState):
    assert of_one(snapshot(None, *words(BAD, BAD), storage(GOOD)), policy).state is state


def test_no_reports_at_all_give_unknown():
    assert of_one(snapshot()).reason is Reason.NO_EVIDENCE


def test_brokers_in_metadata_and_in_replica_lists_are_all_judged():
    assert set(judge(snapshot(cluster(partition(replicas=[1, 9]), brokers=[1, 2])), POLICY, {})) == {1, 2, 9}


@pytest.mark.parametrize("state", OverrideState)
def test_a_persons_override_does_not_change_what_is_true(state: OverrideState):
    bare = of_one(snapshot(None, *words(BAD, BAD)))
    assert of_one(snapshot(None, *words(BAD, BAD), overrides=[override(1, state)])) == bare


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param(None, after(5), id="the first verdict"),
        pytest.param(verdict(since=after(-7)), after(-7), id="the same state and reason"),
        pytest.param(verdict(reason=Reason.STORAGE_SLOW, since=after(-7)), after(5), id="another reason"),
        pytest.param(verdict(state=HealthState.HEALTHY, since=after(-7)), after(5), id="another state"),
    ],
)
def test_an_unchanged_verdict_keeps_its_since(before: Verdict | None, since):
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

    def test_silent_slow_disk_is_unknown(self):
        undo = record(None, replace(demoted(1), reason=Reason.STORAGE_SLOW))
        found = of_one(snapshot(cluster(partition()), *words(GOOD, GOOD), undo=undo))
        assert (found.state, found.reason) == (HealthState.UNKNOWN, Reason.NO_EVIDENCE)

    def test_unreachable_broker_without_reporting_vantage_is_unknown(self):
        undo = record(None, replace(demoted(1), reason=Reason.EXTERNALLY_UNREACHABLE))
        found = of_one(snapshot(cluster(partition()), *[storage(GOOD)], undo=undo))
        assert found.state is HealthState.UNKNOWN

    def test_a_person_who_switches_the_probe_off_is_believed(self):
        undo = record(None, replace(demoted(1), reason=Reason.STORAGE_SLOW))
        blind = replace(POLICY, detection=Detection(storage_latency=StorageLatency(enabled=False)))
        assert (
            of_one(snapshot(cluster(partition()), *words(GOOD, GOOD), undo=undo), blind).state is HealthState.RECOVERING
        )


class TestAShortSilence:
    """As after a take-over: what was before it is carried on."""

    def before(self) -> Verdict:
        return verdict(1, HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, since=after(-100))

    def test_the_sick_stay_sick_since_then(self):
        silent = of_one(snapshot(cluster(partition()), now=after(0)), before=self.before())
        assert (silent.state, silent.since) == (HealthState.UNKNOWN, after(0))
        again = of_one(snapshot(cluster(partition()), *words(BAD, BAD), now=after(4)), before=silent)
        assert (again.state, again.since) == (HealthState.SICK, after(-100))

    def test_a_long_silence_restarts_the_time(self):
        silent = of_one(snapshot(cluster(partition()), now=after(0)), before=self.before())
        again = of_one(snapshot(cluster(partition()), *words(BAD, BAD), now=after(31)), before=silent)
        assert again.since == after(31)


def test_waiting_for_fencing_is_counted_across_control_readings():
    seen, before = cluster(partition()), None
    for second in range(0, 20, 2):
        control = BAD if second % 4 else DUNNO
        before = of_one(snapshot(seen, *words(BAD, BAD, control=control), now=after(second)), before=before)
    assert before is not None
    assert (before.state, before.reason) == (HealthState.SICK, Reason.NOT_FENCED_IN_TIME)


class TestExplaining:
    """A verdict says what it was made of, what did not count, and what would change it."""

    def test_every_signal_is_shown_with_why_it_did_not_count(self):
        policy = replace(POLICY, detection=Detection(external_reachability=Reachability(vantages=("a", "b", "c"))))
        blind = [signal(b, BAD, source="c") for b in (1, 2, 3)]
        found = of_one(snapshot(None, *words(BAD, BAD), *blind, signal(1, GOOD, source="zoo")), policy)
        why = {f.source: f.ignored_because for f in found.facts}
        assert_wording(why)

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
def test_fault_of_held_broker_goes_on_to_be_measured(held: bool):
    slow = replace(storage(BAD), harm=Harm(40.0, 1.0, NOW))
    facts = replace(
        snapshot(cluster(partition(), fenced=(1,)), slow, storage(GOOD, broker=2), storage(GOOD, broker=3)),
        quarantine_orders={1: ordered()} if held else {},
    )
    found = judge(facts, POLICY, {})[1]
    assert found.reason is Reason.BROKER_DOWN
    assert dict(found.harm)[HarmCause.STORAGE] == (40.0 if held else None)
