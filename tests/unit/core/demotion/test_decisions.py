"""Who may lead: by signals and by overrides, and how a demotion ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from bellwether.core.demotion.decisions import Decisions, decide, decide_on_deletion, manual_decision
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Demotion, Policy, Promotion, PromotionMode
from bellwether.core.signals import Override, OverrideState, Reading
from testkit.values.builders import (
    START,
    after,
    cluster,
    demoted,
    override,
    partition,
    record,
    returning,
    signal,
    snapshot,
    verdict,
    verdicts,
)


def policy(cap: int | str = 2, dwell_seconds: int = 0) -> Policy:
    return Policy(name="main", demotion=Demotion(dwell_seconds=dwell_seconds, max_brokers=cap))


def big(brokers: int | Sequence[int] = 10, **more: object) -> Cluster:
    """A cluster in which every broker has a partition; racks are only where they are named."""
    ids = list(range(1, brokers + 1)) if isinstance(brokers, int) else list(brokers)
    ring = [partition(index=i, replicas=[ids[(i + k) % len(ids)] for k in range(3)]) for i in range(len(ids))]
    return cluster(*ring, brokers=ids, **more)  # type: ignore[arg-type]


def test_a_demotion_by_signals_says_why_and_since_when():
    seen = big(3)
    judged = verdicts(seen, sick=[1])
    made = decide(Context(snapshot(seen, now=after(5)), judged, policy(1)))
    why = judged[1]
    assert made.demoted[1] == DemotedBroker(1, Cause.SIGNALS, why.reason, why.message, after(5))


@pytest.mark.parametrize("state", [s for s in HealthState if s is not HealthState.SICK])
def test_only_the_sick_are_demoted(state: HealthState):
    seen = big()
    made = decide(Context(snapshot(seen), {**verdicts(seen), 1: verdict(1, state)}, policy()))
    assert dict(made.demoted) == {}


class TestOverrides:
    def decide(self, *state: Override, sick: Sequence[int] = (), undo: Sequence[DemotedBroker] = (), cap: int = 1):
        seen = big()
        found = snapshot(seen, now=after(100), undo=record(None, *undo), overrides=state)
        return decide(Context(found, verdicts(seen, sick=sick), policy(cap)))

    def test_demoted_demotes_the_healthy(self):
        made = self.decide(override(7, reason="disk swap"))
        assert made.demoted[7] == DemotedBroker(7, Cause.OVERRIDE, Reason.OVERRIDE_DEMOTED, "disk swap", after(100))

    def test_demoted_beats_the_cap_and_does_not_use_it_up(self):
        made = self.decide(override(7), override(8), sick=[1])
        assert list(made.demoted) == [1, 7, 8]

    def test_promoted_keeps_the_sick_from_being_demoted(self):
        made = self.decide(override(1, OverrideState.PROMOTED), sick=[1])
        assert (dict(made.demoted), made.held) == ({}, ())

    @pytest.mark.parametrize("cause", Cause)
    def test_promoted_ends_a_demotion_of_any_cause(self, cause: Cause):
        made = self.decide(override(1, OverrideState.PROMOTED), sick=[1], undo=[demoted(1, cause)])
        assert made.promoted == (1,)

    def test_one_that_has_expired_is_none(self):
        made = self.decide(override(7, until=after(100)))
        assert dict(made.demoted) == {}

    def test_one_holds_until_its_time(self):
        assert list(self.decide(override(7, until=after(100.1))).demoted) == [7]

    def test_end_of_word_ends_demotion_of_healthy(self):
        assert self.decide(undo=[demoted(7, Cause.OVERRIDE)]).promoted == (7,)

    def test_end_of_word_leaves_sick_demoted_by_signals(self):
        made = self.decide(sick=[1], undo=[demoted(1, Cause.OVERRIDE, since=after(3))])
        assert (made.demoted[1].cause, made.demoted[1].since) == (Cause.SIGNALS, after(3))

    def test_end_of_override_does_not_promote_what_signals_demoted(self):
        made = self.decide(override(1), sick=[1], undo=[demoted(1, since=after(3))])
        assert (made.demoted[1].cause, made.demoted[1].since) == (Cause.SIGNALS, after(3))

    def test_override_takes_over_demotion_of_recovered_broker_keeping_its_time(self):
        made = self.decide(override(1), undo=[demoted(1, since=after(3))])
        assert (made.demoted[1].cause, made.demoted[1].since) == (Cause.OVERRIDE, after(3))

    def test_one_for_an_unknown_broker_does_nothing(self):
        assert dict(self.decide(override(99)).demoted) == {}


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        (HealthState.HEALTHY, False),
        (HealthState.RECOVERING, True),
        (HealthState.SUSPECT, True),
        (HealthState.SICK, True),
        (HealthState.DOWN, True),
        (HealthState.UNKNOWN, True),
    ],
)
def test_only_health_ends_a_demotion_by_signals(state: HealthState, stays: bool):
    seen = big(3)
    made = decide(
        Context(snapshot(seen, undo=record(None, demoted(1))), {**verdicts(seen), 1: verdict(1, state)}, policy())
    )
    assert (1 in made.demoted, made.promoted) == (stays, () if stays else (1,))


@pytest.mark.parametrize("cause", [Cause.OVERRIDE, Cause.MAINTENANCE])
class TestARelease:
    """The end of an override, of a drain or of maintenance."""

    def left(self, cause: Cause, judged: Verdict, seconds: float = 100) -> DemotedBroker | None:
        seen = big(3)
        found = snapshot(seen, signal(1, Reading.PASSING), undo=record(None, demoted(1, cause)), now=after(seconds))
        return decide(Context(found, {**verdicts(seen), 1: judged}, policy())).demoted.get(1)

    @pytest.mark.parametrize("state", [HealthState.HEALTHY, HealthState.SUSPECT])
    def test_a_broker_without_cause_for_demotion_leads_again(self, cause: Cause, state: HealthState):
        assert self.left(cause, verdict(1, state)) is None

    def test_only_a_sick_broker_stays_demoted_by_signals(self, cause: Cause):
        sick = verdict(1, HealthState.SICK)
        assert self.left(cause, sick) == DemotedBroker(1, Cause.SIGNALS, sick.reason, sick.message, START)

    @pytest.mark.parametrize("state", [HealthState.RECOVERING, HealthState.DOWN])
    def test_release_of_sick_broker_waits_without_using_cap(self, cause: Cause, state: HealthState):
        left = self.left(cause, verdict(1, state))
        assert left is not None
        assert (left.cause, left.reason) == (cause, Reason.STABILIZING)
        assert not left.by_person

    @pytest.mark.parametrize("starting", [{"restarted": START}, {"resumed": START}])
    def test_a_suspect_one_waits_while_it_starts_up(self, cause: Cause, starting: dict[str, datetime]):
        left = self.left(cause, replace(verdict(1, HealthState.SUSPECT), **starting))
        assert left is not None
        assert left.cause is cause

    @pytest.mark.parametrize("last", [HealthState.SICK, HealthState.DOWN, HealthState.RECOVERING])
    def test_missing_evidence_does_not_return_broker_last_seen_failing(self, cause: Cause, last: HealthState):
        left = self.left(cause, replace(verdict(1, HealthState.UNKNOWN), last_known=last))
        assert left is not None
        assert left.cause is cause

    @pytest.mark.parametrize("last", [None, HealthState.HEALTHY, HealthState.DOWN, HealthState.RECOVERING])
    def test_silence_keeps_healthy_broker_from_leading_only_for_a_while(self, cause: Cause, last: HealthState | None):
        unseen = replace(verdict(1, HealthState.UNKNOWN), last_known=last)
        assert self.left(cause, unseen, RESTORE_TIMEOUT.total_seconds() + 1) is None
        fails = (EvidenceItem("Canary", "canary", Reading.FAILING, START),)
        for failing in ({"last_known": HealthState.SICK}, {"last_known": HealthState.DOWN, "facts": fails}):
            assert self.left(cause, replace(unseen, **failing), 100_000) is not None


def test_manual_promotion_waits_for_a_person_and_says_how():
    seen = big(3)
    manual = replace(policy(), promotion=Promotion(mode=PromotionMode.MANUAL))
    made = decide(Context(snapshot(seen, undo=record(None, demoted(1))), verdicts(seen), manual))
    held = made.hold_of(1)
    assert 1 in made.demoted
    assert held is not None
    assert held.reason is Reason.PROMOTION_MANUAL
    assert "spec.override.state to Promoted" in held.message
    assert made.hold_of(2) is None


def test_who_was_commanded_stays_demoted_however_well():
    seen = big(3)
    made = decide(Context(snapshot(seen, undo=record(None, demoted(1, Cause.COMMAND))), verdicts(seen), policy()))
    assert list(made.demoted) == [1]


def test_a_decommissioned_broker_is_forgotten():
    seen = big(3)
    made = decide(Context(snapshot(seen, undo=record(None, demoted(42))), verdicts(seen), policy()))
    assert (dict(made.demoted), made.promoted) == ({}, (42,))


class TestParting:
    @pytest.mark.parametrize(
        ("cause", "state", "stays"),
        [
            pytest.param(Cause.SIGNALS, HealthState.HEALTHY, False, id="signals, healthy"),
            pytest.param(Cause.SIGNALS, HealthState.RECOVERING, False, id="signals, recovering"),
            pytest.param(Cause.SIGNALS, HealthState.UNKNOWN, True, id="signals, unknown: evidence is needed"),
            pytest.param(Cause.SIGNALS, HealthState.SUSPECT, True, id="signals, suspect"),
            pytest.param(Cause.SIGNALS, HealthState.SICK, True, id="signals, sick"),
            pytest.param(Cause.SIGNALS, HealthState.DOWN, True, id="signals, down"),
            pytest.param(Cause.OVERRIDE, HealthState.UNKNOWN, False, id="a person, unknown"),
            pytest.param(Cause.OVERRIDE, HealthState.SICK, True, id="a person, sick"),
            pytest.param(Cause.COMMAND, HealthState.UNKNOWN, False, id="a command, unknown"),
            pytest.param(Cause.COMMAND, HealthState.HEALTHY, False, id="a command, healthy"),
        ],
    )
    def test_only_who_is_not_known_to_be_sick_leads_again(self, cause: Cause, state: HealthState, stays: bool):
        seen = big(3)
        found = snapshot(seen, undo=record(None, demoted(1, cause)))
        made = decide_on_deletion(Context(found, {**verdicts(seen), 1: verdict(1, state)}, policy()))
        assert (1 in made.demoted, made.promoted) == (stays, () if stays else (1,))

    def test_no_new_broker_is_demoted(self):
        seen = big()
        assert dict(decide_on_deletion(Context(snapshot(seen), verdicts(seen, sick=[1]), policy())).demoted) == {}

    def test_a_decommissioned_broker_is_let_go(self):
        seen = big(3)
        assert decide_on_deletion(
            Context(snapshot(seen, undo=record(None, demoted(42))), verdicts(seen), policy())
        ).promoted == (42,)


class TestCommands:
    def test_a_command_demotes_whatever_the_signals_and_the_cap_say(self):
        seen = big(3)
        made = manual_decision(demote=[2], message="rack moves")(Context(snapshot(seen, now=after(9)), {}, policy(1)))
        assert dict(made.demoted) == {2: DemotedBroker(2, Cause.COMMAND, Reason.MANUAL_COMMAND, "rack moves", after(9))}

    def test_it_leaves_other_demotions_unchanged(self):
        found = snapshot(undo=record(None, demoted(1, since=after(-9)), demoted(2)))
        assert list(manual_decision(demote=[3])(Context(found, {}, policy())).demoted) == [1, 2, 3]
        promoted = manual_decision(promote=[1])(Context(found, {}, policy()))
        assert (list(promoted.demoted), promoted.promoted) == ([2], (1,))

    def test_it_leaves_the_restorations_of_other_brokers_as_they_are(self):
        undo = replace(record(), returning={b: returning(b) for b in (1, 2, 3)})
        made = manual_decision(demote=[1], promote=[2])(Context(snapshot(undo=undo), {}, policy()))
        assert list(made.returning) == [3]

    def test_commanded_again_it_keeps_its_time_and_has_a_sentence(self):
        found = snapshot(now=after(9), undo=record(None, demoted(1, since=after(-9))))
        again = manual_decision(demote=[1])(Context(found, {}, policy())).demoted[1]
        assert (again.since, again.cause, bool(again.message)) == (after(-9), Cause.COMMAND, True)


def test_override_on_an_unknown_broker_is_named_and_demotes_none():
    three = cluster(partition(replicas=[1, 2, 3]))
    decisions = decide(
        Context(snapshot(three, overrides=[override(99, OverrideState.DEMOTED)]), verdicts(three), Policy(name="main"))
    )
    assert not decisions.demoted
    assert [(h.broker, h.reason) for h in decisions.held] == [(99, Reason.BROKER_DOWN)]


class TestDwell:
    """A broker that has become sick just now waits for the signals of a common cause to come in."""

    def decided(self, since: float, **more: object) -> Decisions:
        seen = big()
        judged = {**verdicts(seen), 1: verdict(1, since=after(since))}
        return decide(Context(snapshot(seen, now=after(10)), judged, policy(dwell_seconds=5, **more)))

    def test_who_has_been_sick_for_long_enough_is_demoted(self):
        assert list(self.decided(5).demoted) == [1]
        assert not self.decided(5).dwelling

    def test_who_has_not_is_named_and_not_held(self):
        found = self.decided(6)
        assert (list(found.demoted), found.dwelling, found.held) == ([], {1: 1.0}, ())

    def test_dwelling_brokers_count_towards_a_shared_cause(self):
        seen = big(4)
        judged = {**verdicts(seen), 1: verdict(1, since=after(0)), 2: verdict(2, since=after(9))}
        found = decide(Context(snapshot(seen, now=after(10)), judged, policy(dwell_seconds=5)))
        assert found.demoted == {}
        assert {h.reason for h in found.held} == {Reason.SYSTEMIC_CAUSE}

    def test_a_persons_word_does_not_dwell(self):
        seen = big()
        asked = snapshot(seen, now=after(10), overrides=[override(1)])
        assert list(decide(Context(asked, verdicts(seen), policy(dwell_seconds=5))).demoted) == [1]
