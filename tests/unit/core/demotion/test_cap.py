"""How many brokers signals may demote: the cap, failure domains, and a cause that brokers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bellwether.core.demotion.cap import symptom
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Policy
from bellwether.core.signals import SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, override, partition, record, snapshot, verdict, verdicts

CUT, SLOW = 5, 3
"""Severities."""
CAP, SHARED = "CapReached", "SystemicCause"


def policy(cap: int | str = "20%") -> Policy:
    return Policy(name="main", demotion=Demotion(dwell_seconds=0, max_brokers=cap))


def ring(brokers: int, dead: Sequence[int] = (), racks: Mapping[int, str] | None = None) -> Cluster:
    """Every broker is the first of a partition with three replicas; a dead one is in no ISR and not registered."""
    ids = range(1, brokers + 1)
    led = []
    for b in ids:
        replicas = [(b - 1 + k) % brokers + 1 for k in range(3)]
        led.append(partition(index=b, replicas=replicas, isr=[r for r in replicas if r not in dead]))
    living = [b for b in ids if b not in dead]
    return cluster(*led, brokers=living, racks={b: r for b, r in (racks or {}).items() if b in living} or None)


def three_racks(brokers: int) -> dict[int, str]:
    """Brokers 1, 4, 7 and so on are in rack a, and every partition has a replica in each rack."""
    return {b: "abc"[(b - 1) % 3] for b in range(1, brokers + 1)}


def judged(seen: Cluster, cut: Sequence[int] = (), slow: Sequence[int] = ()) -> dict[int, Verdict]:
    """The dead are Down, the cut cannot be reached from outside, the slow have a slow disk; the others are Healthy."""
    found = verdicts(seen, down=sorted(seen.named - seen.live))
    found |= {b: verdict(b, reason=Reason.EXTERNALLY_UNREACHABLE, severity=CUT) for b in cut}
    return found | {b: verdict(b, reason=Reason.STORAGE_SLOW, severity=SLOW) for b in slow}


def decided(
    seen: Cluster, found: Mapping[int, Verdict], asked: Policy | None = None, undo: Sequence[DemotedBroker] = ()
) -> Decisions:
    return decide(Context(snapshot(seen, now=after(100), undo=record(None, *undo)), found, asked or policy()))


def held(made: Decisions) -> dict[int, str]:
    return {h.broker: str(h.reason) for h in made.held}


@pytest.mark.parametrize(
    ("cap", "brokers", "number"),
    [
        pytest.param(2, 100, 2, id="a number is that number"),
        pytest.param("20%", 10, 2, id="a percentage of the brokers"),
        pytest.param("20%", 14, 2, id="rounded down"),
        pytest.param("20%", 15, 3, id="exact at the step"),
        pytest.param("20%", 3, 1, id="at least one on three brokers"),
        pytest.param("1%", 50, 1, id="at least one on fifty"),
        pytest.param("49%", 100, 49, id="the most that may be asked for"),
    ],
)
def test_the_cap_in_brokers(cap: int | str, brokers: int, number: int):
    assert Demotion(max_brokers=cap).cap(brokers) == number


@pytest.mark.parametrize(
    ("brokers", "dead", "cut", "slow", "chosen", "blocked"),
    [
        pytest.param(2, [], [1], [], [1], {}, id="2, one cut: the other leads"),
        pytest.param(3, [], [], [1], [1], {}, id="3, one slow: it is demoted"),
        pytest.param(3, [3], [1], [], [1], {}, id="3, one dead and one cut: the last one leads"),
        pytest.param(3, [3], [], [1], [1], {}, id="3, one dead and one slow: the last one leads"),
        pytest.param(3, [], [1], [2], [1], {2: CAP}, id="3, one cut and one slow: the worse one goes"),
        pytest.param(3, [3], [1], [2], [1], {2: CAP}, id="3, one dead, one cut, one slow: the slow one leads"),
        pytest.param(3, [2, 3], [1], [], [], {1: CAP}, id="3, two dead and one cut: the last one stays"),
        pytest.param(3, [], [1, 2], [], [], {1: SHARED, 2: SHARED}, id="3, two cut: a shared cause"),
        pytest.param(3, [3], [1, 2], [], [], {1: SHARED, 2: SHARED}, id="3, one dead and two cut: a shared cause"),
        pytest.param(4, [4], [1], [], [1], {}, id="4, one dead and one cut: the cut one goes"),
        pytest.param(4, [3, 4], [1], [], [1], {}, id="4, two dead and one cut: the last one leads"),
        pytest.param(4, [], [1], [2], [1], {2: CAP}, id="4, one cut and one slow: two causes, and the cap"),
        pytest.param(4, [], [1, 2], [], [], {1: SHARED, 2: SHARED}, id="4, two cut: a shared cause"),
        pytest.param(4, [4], [1, 2], [], [], {1: SHARED, 2: SHARED}, id="4, one dead and two cut: a shared cause"),
        pytest.param(5, [5], [1], [], [1], {}, id="5, one dead and one cut: the cut one goes"),
        pytest.param(5, [4, 5], [1], [], [1], {}, id="5, two dead and one cut: the cut one goes"),
        pytest.param(5, [3, 4, 5], [1], [], [1], {}, id="5, three dead and one cut: the last one leads"),
        pytest.param(5, [], [1, 2], [], [1], {2: CAP}, id="5, two cut: less than half, and the cap"),
        pytest.param(5, [], [1], [2, 3], [1], {2: CAP, 3: CAP}, id="5, one cut and two slow: the worst goes"),
        pytest.param(5, [], [1, 2, 3], [], [], dict.fromkeys([1, 2, 3], SHARED), id="5, three cut: a shared cause"),
        pytest.param(5, [5], [1, 2], [], [], {1: SHARED, 2: SHARED}, id="5, two of the four live ones cut"),
        pytest.param(6, [6], [1], [], [1], {}, id="6, one dead and one cut: the cut one goes"),
        pytest.param(6, [2, 5], [1], [], [1], {}, id="6, a rack dead and one cut: the cut one goes"),
        pytest.param(6, [4], [1], [], [1], {}, id="6, of one rack one dead and one cut: the cut one goes"),
        pytest.param(6, [], [1, 4], [], [1, 4], {}, id="6, a rack cut: one failure domain"),
        pytest.param(6, [2], [1, 4], [], [1, 4], {}, id="6, a rack cut and one dead elsewhere: one failure domain"),
        pytest.param(6, [], [1, 2], [], [1], {2: CAP}, id="6, two cut in two racks: the cap"),
        pytest.param(6, [], [1, 4], [2], [1], {4: CAP, 2: CAP}, id="6, a rack cut and one slow elsewhere: the cap"),
        pytest.param(6, [2, 5], [1, 4], [], [], {1: SHARED, 4: SHARED}, id="6, a rack dead and a rack cut: shared"),
        pytest.param(6, [], [1, 2, 3], [], [], dict.fromkeys([1, 2, 3], SHARED), id="6, three cut: a shared cause"),
        pytest.param(6, [], [1, 2], [3, 4], [1], dict.fromkeys([2, 3, 4], CAP), id="6, two cut and two slow: the cap"),
        pytest.param(9, [9], [1], [], [1], {}, id="9, one dead and one cut: the cut one goes"),
        pytest.param(9, [7, 8, 9], [1], [], [1], {}, id="9, three dead and one cut: the cut one goes"),
        pytest.param(9, [], [1, 4, 7], [], [1, 4, 7], {}, id="9, a rack cut: one failure domain"),
        pytest.param(9, [2], [1, 4, 7], [], [1, 4, 7], {}, id="9, a rack cut and one dead elsewhere"),
        pytest.param(9, [1], [4, 7], [], [4, 7], {}, id="9, a rack of which one is dead and the others are cut"),
        pytest.param(9, [2, 5, 8], [1, 4, 7], [], [], dict.fromkeys([1, 4, 7], SHARED), id="9, two racks of three"),
        pytest.param(9, [], [1, 2, 3, 4], [], [1], dict.fromkeys([2, 3, 4], CAP), id="9, four cut: the cap"),
        pytest.param(9, [], [1, 2, 3, 4, 5], [], [], dict.fromkeys(range(1, 6), SHARED), id="9, five cut: shared"),
        pytest.param(
            9, [], [1, 2, 3, 4, 5], [6], [], dict.fromkeys(range(1, 7), SHARED), id="9, five cut: the slow one stays"
        ),
        pytest.param(12, [12], [1, 2], [], [1, 2], {}, id="12, one dead and two cut: both go"),
        pytest.param(12, [12], [1], [2], [1, 2], {}, id="12, one dead, one cut, one slow: both go"),
        pytest.param(12, [], [1, 2, 3], [], [1, 2], {3: CAP}, id="12, three cut: the cap"),
        pytest.param(12, [], [1, 4, 7, 10], [], [1, 4, 7, 10], {}, id="12, a rack cut: one failure domain"),
        pytest.param(12, range(7, 13), [1], [], [1], {}, id="12, half of them dead and one cut: the cut one goes"),
        pytest.param(12, [], range(1, 7), [], [], dict.fromkeys(range(1, 7), SHARED), id="12, half cut: shared"),
        pytest.param(
            12, [], [1, 2, 3], [4, 5, 6], [1, 2], dict.fromkeys([3, 4, 5, 6], CAP), id="12, three cut, three slow"
        ),
        pytest.param(12, range(1, 7), [], [], [], {}, id="12, half of them dead and none sick: nothing to block"),
    ],
)
def test_with_the_defaults_of(
    brokers: int,
    dead: Sequence[int],
    cut: Sequence[int],
    slow: Sequence[int],
    chosen: list[int],
    blocked: dict[int, str],
):
    seen = ring(brokers, dead, three_racks(brokers) if brokers % 3 == 0 else None)
    made = decided(seen, judged(seen, cut, slow))
    assert list(made.demoted) == chosen
    assert held(made) == blocked


class TestTheCap:
    @pytest.mark.parametrize(
        ("seen", "down"),
        [
            pytest.param(cluster(*ring(10).partitions, brokers=10, fenced=[9]), [9], id="fenced"),
            pytest.param(ring(10), [9], id="registered, and no listener answers"),
            pytest.param(ring(10, [9]), [9], id="not registered"),
        ],
    )
    def test_is_not_used_up_by_a_broker_that_is_down(self, seen: Cluster, down: list[int]):
        made = decided(seen, verdicts(seen, sick=[1], down=down), policy(1))
        assert list(made.demoted) == [1]

    @pytest.mark.parametrize("cause", [Cause.OVERRIDE, Cause.COMMAND, Cause.MAINTENANCE])
    def test_is_not_used_up_by_what_a_person_demoted(self, cause: Cause):
        seen = ring(10)
        context = Context(
            snapshot(seen, undo=record(None, demoted(9, cause)), overrides=[override(9)]),
            verdicts(seen, sick=[1]),
            policy(1),
        )
        assert list(decide(context).demoted) == [1, 9]

    def test_is_used_by_brokers_that_signals_demoted_until_promoted(self):
        seen = ring(10)
        made = decided(seen, verdicts(seen, sick=[1], recovering=[9]), policy(1), undo=[demoted(9)])
        assert (list(made.demoted), held(made)) == ([9], {1: CAP})

    def test_is_not_used_by_dead_brokers_that_signals_demoted(self):
        seen = ring(10, dead=[9])
        made = decided(seen, verdicts(seen, sick=[1], down=[9]), policy(1), undo=[demoted(9)])
        assert list(made.demoted) == [1, 9]

    def test_takes_worst_first_then_longest_sick_then_lowest_id(self):
        seen = ring(10)
        sick = {
            1: verdict(1, severity=2, since=after(-50)),
            2: verdict(2, severity=3, since=after(-1)),
            3: verdict(3, severity=3, since=after(-9)),
            4: verdict(4, severity=2, since=after(-50)),
        }
        for cap, chosen in ((1, [3]), (2, [2, 3]), (3, [1, 2, 3])):
            assert list(decided(seen, {**verdicts(seen), **sick}, policy(cap)).demoted) == chosen

    def test_names_the_figures(self):
        seen = ring(10)
        (hold,) = decided(seen, verdicts(seen, sick=[1, 9]), policy(1), undo=[demoted(9)]).held
        assert_wording(hold.message)

    def test_names_the_number_that_admits_all_that_wait(self):
        seen = ring(10)
        first, second = decided(seen, verdicts(seen, sick=[1, 2, 9]), policy(1), undo=[demoted(9)]).held
        assert first.message == second.message
        assert_wording(first.message)

    def test_names_healthy_brokers_that_a_person_keeps_from_leading(self):
        seen = ring(10)
        wanted = [override(b, reason="kernel update, OPS-412") for b in (3, 4)]
        seen_now = snapshot(seen, now=after(100), undo=record(None, demoted(9)), overrides=wanted)
        (hold,) = decide(Context(seen_now, verdicts(seen, sick=[1, 4, 9]), policy(1))).held
        assert_wording(hold.message)

    def test_names_the_brokers_that_are_admitted_at_the_same_time(self):
        seen = ring(10)
        (hold,) = decided(seen, verdicts(seen, sick=[1, 2, 3]), policy("25%")).held
        assert_wording(hold.message)

    def test_promotes_no_broker_that_is_demoted_above_it(self):
        seen = ring(10)
        undo = [demoted(b) for b in (1, 2, 3)]
        made = decided(seen, verdicts(seen, sick=[1, 2, 3, 4]), policy(1), undo=undo)
        assert (list(made.demoted), held(made), made.promoted) == ([1, 2, 3], {4: CAP}, ())


class TestASharedCause:
    def test_promotes_no_demoted_broker(self):
        seen = ring(10)
        undo = [demoted(b) for b in (1, 2, 3)]
        made = decided(seen, verdicts(seen, sick=[1, 2, 3, 4, 5, 6]), policy(9), undo=undo)
        assert list(made.demoted) == [1, 2, 3]
        assert held(made) == dict.fromkeys([4, 5, 6], SHARED)

    @pytest.mark.parametrize("state", [HealthState.SUSPECT, HealthState.UNKNOWN])
    def test_demoted_broker_keeps_symptom_while_its_signals_do_not_pass(self, state: HealthState):
        seen = ring(4)
        found = {**judged(seen, cut=[1]), 2: verdict(2, state)}
        assert held(decided(seen, found, policy(2), undo=[demoted(2)])) == {1: SHARED}

    def test_a_demoted_broker_whose_signals_pass_again_has_no_symptom(self):
        seen = ring(4)
        found = {**judged(seen, cut=[1]), 2: verdict(2, HealthState.RECOVERING)}
        assert list(decided(seen, found, policy(2), undo=[demoted(2)]).demoted) == [1, 2]

    def test_silent_broker_counts_as_unreachable_until_kafka_fences_it(self):
        seen = ring(4)
        found = {**judged(seen, cut=[1]), 2: verdict(2, HealthState.DOWN, Reason.UNREACHABLE)}
        assert held(decided(seen, found)) == {1: SHARED}

    def test_names_the_symptom(self):
        seen = ring(3)
        assert_wording(decided(seen, judged(seen, slow=[1, 2])).held[0].message)

    def test_manual_demotions_are_none(self):
        seen = ring(3)
        context = Context(
            snapshot(seen, undo=record(None, demoted(2, Cause.OVERRIDE)), overrides=[override(2)]),
            judged(seen, cut=[1]),
            policy(),
        )
        assert list(decide(context).demoted) == [1, 2]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Reason.EXTERNALLY_UNREACHABLE, Reason.NOT_FENCED_IN_TIME),
            (Reason.STORAGE_SLOW, Reason.REPLICATION_LAGGING),
            (Reason.STORAGE_SLOW, Reason.SYSTEMIC_CAUSE),
        ],
    )
    def test_the_same_cause_can_give_two_reasons(self, one: Reason, other: Reason):
        assert symptom(verdict(1, reason=one)) == symptom(verdict(2, reason=other))

    def test_failing_signals_of_two_types_are_two_symptoms(self):
        one, other = (
            replace(verdict(reason=Reason.SIGNAL_FAILING), signal=s) for s in (SignalType.PROMETHEUS, "VolumeHealth")
        )
        assert symptom(one) != symptom(other)
        assert symptom(one) == symptom(replace(one, broker=2))

    def test_a_demoted_broker_keeps_the_type_of_its_failing_signal(self):
        seen, lost = ring(4), replace(demoted(2), reason=Reason.SIGNAL_FAILING, signal=SignalType.PROMETHEUS)
        for signal, blocked in ((SignalType.PROMETHEUS, {1: SHARED}), ("VolumeHealth", {})):
            sick = replace(verdict(1, reason=Reason.SIGNAL_FAILING), signal=signal)
            found = {**verdicts(seen, suspect=[2]), 1: sick}
            assert held(decided(seen, found, policy(2), undo=[lost])) == blocked

    @pytest.mark.parametrize(
        ("signal", "reason"),
        [
            (SignalType.STORAGE_LATENCY, Reason.STORAGE_SLOW),
            (SignalType.READ_LATENCY, Reason.STORAGE_SLOW),
            (SignalType.STORAGE_LATENCY, Reason.READS_SLOW),
            (SignalType.CANARY, Reason.CANARY_FAILING),
            (SignalType.EXTERNAL_REACHABILITY, Reason.EXTERNALLY_UNREACHABLE),
        ],
    )
    @pytest.mark.parametrize("why", [Reason.HARM_BELOW_COST, Reason.SYSTEMIC_CAUSE])
    def test_brokers_whose_clients_lose_requests_share_the_symptom(self, why: Reason, signal: str, reason: Reason):
        seen = ring(4)
        less = replace(verdict(2, HealthState.SUSPECT, reason=why), signal=signal)
        found = verdicts(seen) | {1: verdict(1, reason=reason), 2: less}
        assert held(decided(seen, found)) == {1: SHARED}

    def test_harm_of_another_kind_is_another_symptom(self):
        seen = ring(4)
        less = replace(
            verdict(2, HealthState.SUSPECT, reason=Reason.HARM_BELOW_COST), signal=SignalType.STORAGE_LATENCY
        )
        found = verdicts(seen) | {1: verdict(1, reason=Reason.EXTERNALLY_UNREACHABLE), 2: less}
        assert held(decided(seen, found)) == {}

    @pytest.mark.parametrize("state", [s for s in HealthState if s not in (HealthState.SICK, HealthState.DOWN)])
    def test_a_broker_that_does_not_fail_has_no_symptom(self, state: HealthState):
        assert symptom(verdict(1, state)) is None


class TestTheLastOneThatMayLead:
    def test_stays_where_the_others_are_demoted_by_a_person(self):
        seen = ring(3)
        undo = [replace(demoted(b, Cause.COMMAND), message="trying it") for b in (2, 3)]
        made = decided(seen, judged(seen, cut=[1]), undo=undo)
        assert (list(made.demoted), held(made)) == ([2, 3], {1: CAP})
        assert_wording(made.held[0].message)

    def test_full_secondary_cap_is_not_advised_to_be_raised(self):
        seen = ring(3)
        wanted = [override(3, reason="kernel update, OPS-412")]
        seen_now = snapshot(seen, now=after(100), undo=record(None, demoted(1)), overrides=wanted)
        (hold,) = decide(Context(seen_now, judged(seen, cut=[2], slow=[1]), policy("49%"))).held
        assert (hold.broker, hold.reason) == (2, CAP)
        assert_wording(hold.message)

    def test_stays_where_the_others_are_as_sick(self):
        seen = ring(3)
        found = {
            b: replace(verdict(b, reason=Reason.SIGNAL_FAILING, severity=2), signal=s)
            for b, s in ((1, SignalType.PROMETHEUS), (2, "VolumeHealth"), (3, "DiskTemperature"))
        }
        assert held(decided(seen, found, policy(3))) == dict.fromkeys([1, 2, 3], CAP)


class TestFailureDomains:
    def demoted(self, seen: Cluster, sick: list[int], suspect: Sequence[int] = ()) -> list[int]:
        found = verdicts(seen, sick=sick, suspect=suspect, down=sorted(seen.named - seen.live))
        return list(decided(seen, found, policy(1)).demoted)

    def test_a_suspect_in_another_rack_forbids_it(self):
        assert self.demoted(ring(6, racks=three_racks(6)), [1, 4], suspect=[3]) == [1]

    def test_a_broker_of_which_nothing_is_known_forbids_it(self):
        seen = ring(6, racks=three_racks(6))
        found = verdicts(seen, sick=[1, 4], unknown=[3])
        assert list(decided(seen, found, policy(1)).demoted) == [1]

    def test_broker_that_person_demoted_elsewhere_does_not_forbid_it(self):
        seen = ring(9, racks=three_racks(9))
        found = verdicts(seen, sick=[1, 4, 7], unknown=[3])
        made = decided(seen, found, policy(1), undo=[demoted(3, Cause.COMMAND)])
        assert list(made.demoted) == [1, 3, 4, 7]

    def test_a_broker_elsewhere_that_signals_demoted_forbids_it(self):
        seen = ring(9, racks=three_racks(9))
        found = verdicts(seen, sick=[1, 4, 7], recovering=[3])
        assert list(decided(seen, found, policy(2), undo=[demoted(3)]).demoted) == [1, 3]

    def test_rack_of_half_of_brokers_has_shared_cause(self):
        assert self.demoted(ring(6, racks={1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b"}), [1, 2, 3]) == []

    def test_a_cluster_in_one_rack_has_no_domains(self):
        assert self.demoted(ring(6, racks=dict.fromkeys(range(1, 7), "a")), [1, 4]) == [1]

    def test_a_broker_without_a_rack_makes_domains_unknown(self):
        assert self.demoted(ring(6, racks={b: r for b, r in three_racks(6).items() if b != 6}), [1, 4]) == [1]

    def test_partition_that_would_lose_its_last_healthy_member_forbids_it(self):
        seen = ring(6, racks=three_racks(6))
        alone = partition("alone", replicas=[1, 4, 2], isr=[1, 4])
        assert self.demoted(replace(seen, partitions=(*seen.partitions, alone)), [1, 4]) == [1]


class TestWhatTheOthersCanCarry:
    """A rack is one failure domain only where its leaders fit on the others."""

    def decided(self, capacity: Capacity, load: int = 0, loads: Loads | None = None) -> list[int]:
        """Who is demoted where brokers 1 and 2 are sick; every partition costs so much, and every broker follows 10."""
        racks = {b: "abc"[(b - 1) // 2] for b in range(1, 7)}
        led = [partition(index=i, replicas=(1 + i % 6, 1 + (i + 2) % 6, 1 + (i + 4) % 6)) for i in range(12)]
        measured = Loads({p.key: load for p in led}, following=dict.fromkeys(range(1, 7), 10))
        seen = replace(snapshot(cluster(*led, brokers=6, racks=racks)), loads=loads or measured)
        demotion = Demotion(max_brokers=1, dwell_seconds=0, capacity=capacity)
        limited = Policy(name="p", mode=Mode.ENFORCE, demotion=demotion)
        return sorted(decide(Context(seen, verdicts(seen.cluster, sick=[1, 2]), limited)).demoted)

    def test_a_rack_whose_leaders_fit_elsewhere_is_one_cause(self):
        assert self.decided(Capacity(max_leaders=3)) == [1, 2]

    def test_rack_whose_leaders_do_not_fit_stays_under_cap(self):
        assert self.decided(Capacity(max_leaders=2)) == [1]

    def test_is_not_one_cause_where_load_does_not_fit(self):
        """Each of the other four leads two, and would lead one more."""
        assert self.decided(Capacity(max_load=10 + 3 * 7), load=7) == [1, 2]
        assert self.decided(Capacity(max_load=10 + 3 * 7 - 1), load=7) == [1]

    def test_nor_while_loads_are_awaited(self):
        assert self.decided(Capacity(max_load=10**6), loads=LOADS_PENDING) == [1]
