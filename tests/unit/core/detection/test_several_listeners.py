"""Several listeners: a quorum agrees on one of them, and the verdict names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, Reachability
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, ListenerReading, Reading, Signal, UnreachableCause
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, partition, record, signal, snapshot
from testkit.values.vantage_signals import BAD, DUNNO, GOOD

X, Y = "CLIENTS", "PARTNERS"
POLICY = Policy(name="main", detection=Detection(external_reachability=Reachability(listeners=(X, Y))))
LITTLE, MUCH = Harm(1.5, 1.0, after(0)), Harm(400.0, 1.0, after(0))
REFUSED = UnreachableCause.REFUSED


def said(vantage: str, *failing: str, broker: int = 1, harms: Mapping[str, Harm] | None = None) -> Signal:
    """What a vantage says of a broker: at these listeners it fails."""
    harms = harms or {}
    own = signal(broker, BAD if failing else GOOD, source=vantage)
    apart = tuple(ListenerReading(name, BAD, harms.get(name), REFUSED) for name in failing)
    worst = max(harms.values(), key=lambda harm: harm.lost_seconds, default=None)
    return replace(own, listeners=apart, harm=worst, cause=REFUSED if failing else None)


def of_three(*signals: Signal, policy: Policy = POLICY) -> Verdict:
    """The verdict on broker 1, of which these are said; brokers 2 and 3 answer at all listeners from everywhere."""
    others = [signal(b, GOOD, source=v) for b in (2, 3) for v in {s.source for s in signals}]
    return judge(snapshot(None, *signals, *others), policy, {})[1]


def test_a_quorum_that_fails_at_the_second_listener_names_it() -> None:
    found = of_three(said("a", Y), said("b", Y), said("c"))
    assert (found.state, found.reason, found.cause) == (HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE, REFUSED)
    assert_wording(found.message)


def test_vantages_that_fail_at_different_listeners_do_not_agree() -> None:
    found = of_three(said("a", X), said("b", Y), said("c"))
    assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.VANTAGES_DISAGREE)
    assert_wording(found.message)


def test_both_listeners_are_named_where_the_same_vantages_reach_neither() -> None:
    found = of_three(said("a", X, Y), said("b", X, Y), said("c"))
    assert_wording(found.message)


def test_only_harm_of_listener_that_they_agree_on_counts() -> None:
    long_cut_here, just_cut = {X: MUCH, Y: LITTLE}, {Y: LITTLE}
    found = of_three(said("a", X, Y, harms=long_cut_here), said("b", Y, harms=just_cut), said("c"))
    assert (found.state, found.reason) == (HealthState.SUSPECT, Reason.HARM_BELOW_COST)
    assert_wording(found.message)


def test_listener_that_fails_at_every_broker_hides_no_other_listener() -> None:
    everywhere = [said(v, X, broker=b, harms={X: MUCH}) for v in "ab" for b in (2, 3)]
    cut = [said(v, X, Y, harms={X: MUCH, Y: MUCH}) for v in "ab"]
    found = judge(snapshot(None, *cut, *everywhere), POLICY, {})
    assert (found[1].state, found[1].message.split(":")[0]) == (HealthState.SICK, "listener PARTNERS")
    assert found[2].state is HealthState.UNKNOWN
    assert_wording(found[2].message)


def test_a_listener_that_fails_at_every_broker_moves_no_leader() -> None:
    everywhere = [said(v, X, broker=b, harms={X: MUCH}) for v in "ab" for b in (1, 2, 3)]
    blips = [said(v, X, Y, harms={X: MUCH, Y: LITTLE}) for v in "ab"]
    found = judge(snapshot(None, *blips, *everywhere[1:3], *everywhere[4:]), POLICY, {})
    assert found[1].reason is Reason.HARM_BELOW_COST


def test_what_a_vantage_does_not_measure_is_no_answer() -> None:
    unmeasured = replace(said("c"), listeners=(ListenerReading(Y, DUNNO),))
    found = of_three(said("a", Y, harms={Y: MUCH}), said("b", Y, harms={Y: MUCH}), unmeasured)
    assert found.state is HealthState.SICK


def test_a_listener_that_is_not_measured_changes_nothing() -> None:
    unmeasured = [replace(said(v), listeners=(ListenerReading(Y, DUNNO),)) for v in "abc"]
    assert of_three(*unmeasured).state is HealthState.HEALTHY


def test_why_no_vantage_measures_only_listener_is_in_verdict() -> None:
    why = "not probed: the broker advertises A, not EXTERNAL: correct spec.detection.externalReachability.listeners"
    unmeasured = [replace(signal(1, DUNNO, source=v), message=why) for v in "ab"]
    found = of_three(*unmeasured, policy=Policy(name="main"))
    assert_wording(found.message)


def test_a_failing_source_without_listeners_does_not_join_a_quorum() -> None:
    unnamed = signal(1, BAD, source="b")
    assert of_three(said("a", X), unnamed, said("c")).reason is not Reason.EXTERNALLY_UNREACHABLE
    assert of_three(signal(1, BAD, source="a"), unnamed, said("c")).reason is Reason.EXTERNALLY_UNREACHABLE


def test_the_evidence_is_what_the_vantages_said() -> None:
    found = of_three(said("a", X), said("b", Y), said("c"))
    assert [(f.source, f.reading) for f in found.facts] == [("a", BAD), ("b", BAD), ("c", GOOD)]


def test_vantage_that_fails_everywhere_at_different_listeners_is_not_blind() -> None:
    mixed = [said("a", X, broker=1), said("a", Y, broker=2), said("a", X, broker=3)]
    found = judge(snapshot(None, *mixed, *(signal(b, GOOD, source=v) for b in (1, 2, 3) for v in "bc")), POLICY, {})[1]
    assert (found.reason, {f.ignored_because for f in found.facts}) == (Reason.VANTAGES_DISAGREE, {""})


def test_a_broker_stays_demoted_while_any_listener_of_it_fails() -> None:
    undo = record(None, demoted(1))
    others = [signal(b, GOOD, source=v) for b in (2, 3) for v in "ab"]
    found = judge(snapshot(None, said("a", Y), said("b", Y), *others, undo=undo), POLICY, {})[1]
    assert found.state is HealthState.SICK


def said_at(*signals: Signal, seconds: float) -> Snapshot:
    return snapshot(cluster(partition()), *signals, now=after(seconds))


def test_a_vantage_that_reaches_another_broker_counts_for_all_again() -> None:
    others = [signal(b, GOOD, source=v) for b in (1, 2, 3) for v in "ab"]
    blind = [said("c", X, broker=b) for b in (1, 2, 3)]
    well = judge(said_at(*others, *blind, seconds=0), POLICY, {})
    assert well[1].state is HealthState.HEALTHY
    seeing = [*blind[:2], said("c", Y, broker=3)]
    assert judge(said_at(*others, *seeing, seconds=1), POLICY, well)[1].state is HealthState.SUSPECT


def test_reading_of_one_listener_is_signal_of_its_own() -> None:
    two = said("a", X, Y, harms={X: MUCH, Y: LITTLE})
    assert (two.at_listener(Y).reading, two.at_listener(Y).harm) == (BAD, LITTLE)
    assert (two.at_listener("OTHER").reading, two.at_listener("OTHER").harm) == (Reading.PASSING, None)
