"""What the audit trail says of a reconcile: everything that a person asks later, and never more than fits."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.demotion.links import LinkDecisions
from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import (
    ApplicationEnd,
    BrokenLink,
    Cause,
    DemotedBroker,
    EntryState,
    Link,
    PlanApplication,
    SentOrder,
    UndoRecord,
)
from bellwether.core.planning.plan import Move, MoveKind, Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.audit import (
    BROKERS_SHOWN,
    CHANGES_SHOWN,
    EVIDENCE_SIZE,
    ORDERS_KEPT,
    ORDERS_LOOKED_AT,
    SAMPLE_SIZE,
    AuditEntry,
    begin_entry,
    complete_entry,
    lost_orders,
    with_orders,
)
from bellwether.core.signals import Override, OverrideState, Purpose, Reading
from bellwether.core.waves.rebalance_waves import WaveResult
from testkit.messages import assert_wording
from testkit.values.builders import CLUSTER_ID, START, after, context, demoted, returning, snapshot

NOTHING = UndoRecord(CLUSTER_ID, 3)


def move(number: int, topic: str = "orders", *, elect: bool = True, leader: int | None = 1) -> Move:
    key = PartitionKey(f"id-{topic}", number)
    return Move(key, topic, MoveKind.DISPLACE, (1, 2, 3), (2, 3, 1), (1, 2, 3), leader, elect)


def verdict(broker: int = 1, state: HealthState = HealthState.SICK, facts: int = 1) -> Verdict:
    seen = tuple(
        EvidenceItem("ExternalReachability", f"zone-{n}", Reading.FAILING, START, "refused") for n in range(facts)
    )
    reason = Reason.EXTERNALLY_UNREACHABLE if state is HealthState.SICK else Reason.SIGNALS_PASSING
    made = Verdict(broker, state, reason, "2 of 2 vantages cannot reach it", START)
    return replace(made, facts=seen) if facts else made


def noted(
    plan: Plan,
    before: UndoRecord = NOTHING,
    verdicts: dict[int, Verdict] | None = None,
    seen: Snapshot | None = None,
    application: PlanApplication | None = None,
    **more: str,
) -> AuditEntry | None:
    progress = WaveResult(replace(before, application=application or before.application))
    return begin_entry(context(seen, verdicts or {}), before, plan, progress, **more)


def entry(plan: Plan, before: UndoRecord = NOTHING, **more: object) -> AuditEntry:
    found = noted(plan, before, **more)  # type: ignore[arg-type]
    assert found is not None
    return found


def deciding(*now: DemotedBroker) -> Plan:
    return Plan(decisions=Decisions({d.broker: d for d in now}))


def test_a_reconcile_that_changes_nothing_says_nothing():
    assert noted(Plan()) is None
    record = replace(NOTHING, demoted={1: demoted(1)})
    assert noted(deciding(demoted(1)), record, {1: verdict()}) is None


def test_a_demotion_by_signals_is_logged_with_its_evidence():
    (change,) = entry(deciding(demoted(1)), verdicts={1: verdict()}).changes
    assert (change.broker, change.demoted, change.word) == (1, True, "signals")
    assert change.reason == "ExternallyUnreachable"
    assert_wording(change.evidence)


def test_what_did_not_count_is_no_evidence():
    judged = verdict(facts=2)
    passed = judged.facts[0]._replace(ignored_because="too old")
    judged = replace(judged, facts=(passed, judged.facts[1]))
    (change,) = entry(deciding(demoted(1)), verdicts={1: judged}).changes
    assert [line.split()[1] for line in change.evidence] == ["zone-1:"]


def test_a_demotion_by_override_is_logged_with_the_person():
    asked = Override(1, OverrideState.DEMOTED, "disk", None, "ann")
    now = replace(demoted(1, Cause.OVERRIDE), reason="OverrideDemoted", message="disk")
    (change,) = entry(deciding(now), seen=replace(snapshot(), overrides=(asked,)), verdicts={1: verdict()}).changes
    assert (change.word, change.reason, change.message) == ("override by ann", "OverrideDemoted", "disk")
    assert change.evidence == (), "the person's request was enough"


@pytest.mark.parametrize(
    ("reason", "word"), [("InMaintenance", "maintenance by ann"), ("Restarting", "its pod's restart")]
)
def test_a_drain_is_logged_with_the_person_or_the_pod(reason: str, word: str):
    asked = Override(1, OverrideState.DEMOTED, "disk", None, "ann", Purpose.MAINTENANCE)
    now = replace(demoted(1, Cause.MAINTENANCE), reason=reason)
    (change,) = entry(deciding(now), seen=replace(snapshot(), overrides=(asked,)), verdicts={1: verdict()}).changes
    assert change.word == word


def test_broker_that_is_well_again_is_promoted_by_its_signals():
    record = replace(NOTHING, demoted={1: demoted(1)})
    well = verdict(state=HealthState.HEALTHY)
    (change,) = entry(Plan(), record, verdicts={1: well}).changes
    assert (change.demoted, change.word, change.reason) == (False, "signals", "SignalsPassing")


@pytest.mark.parametrize(("left", "end"), [(None, "removal"), (START, "end")])
def test_a_promotion_after_an_override_names_the_override(left: datetime | None, end: str):
    by_hand = replace(demoted(1, Cause.OVERRIDE), message="kernel update, OPS-412 (root)")
    record = replace(NOTHING, demoted={1: by_hand})
    overrides = () if left is None else (Override(1, OverrideState.DEMOTED, "kernel update", left, "root"),)
    seen = replace(snapshot(now=after(60)), overrides=overrides)
    (change,) = entry(Plan(), record, seen=seen, verdicts={1: verdict(state=HealthState.HEALTHY)}).changes
    assert change.word == f"the {end} of its override (kernel update, OPS-412 (root))"


def test_a_promotion_by_a_person_is_logged_with_the_person():
    record = replace(NOTHING, demoted={1: demoted(1)})
    asked = Override(1, OverrideState.PROMOTED, "it is well", None, "field manager kubectl-patch")
    seen = replace(snapshot(), overrides=(asked,))
    (change,) = entry(Plan(), record, seen=seen, verdicts={1: verdict()}).changes
    assert_wording(change.word)
    assert change.message == "it is well"


def test_a_broker_that_is_gone_is_promoted_by_the_cluster():
    record = replace(NOTHING, demoted={9: demoted(9)})
    (change,) = entry(Plan(), record).changes
    assert (change.broker, change.word, change.reason) == (9, "cluster", "BrokerDown")


def test_end_of_policy_is_word_for_what_it_promotes():
    record = replace(NOTHING, demoted={1: demoted(1)})
    made = entry(Plan(), record, verdicts={1: verdict()}, occasion="the policy is being deleted")
    assert made.occasion == made.changes[0].word == "the policy is being deleted"


def test_a_demotion_whose_cause_changes_is_logged():
    record = replace(NOTHING, demoted={1: demoted(1, Cause.OVERRIDE)})
    (change,) = entry(deciding(demoted(1, since=after(5))), record, verdicts={1: verdict()}).changes
    assert change.word == "signals"


def test_moves_are_summed_up():
    plan = Plan(moves=(move(0), move(1, elect=False, leader=2), move(0, "other", leader=3)))
    moves = entry(plan).moves
    assert moves is not None
    assert (moves.topics, moves.reorders, moves.elections, moves.restores) == (2, 3, 2, 0)
    assert (moves.leaving, moves.coming) == ({1: 1, 3: 1}, {2: 2})
    assert moves.digest == plan.digest
    assert_wording(moves.sample[0])


def test_an_election_alone_is_logged_as_an_election():
    only = move(0, leader=3)._replace(seen=(2, 3, 1))
    moves = entry(Plan(moves=(only,))).moves
    assert moves is not None
    assert (moves.reorders, moves.elections) == (0, 1)
    assert_wording(moves.sample)


def test_ten_thousand_moves_make_entry_no_larger_than_few():
    many = Plan(moves=tuple(move(n, f"topic-{n % 5000}", leader=n % 1000) for n in range(10_000)))
    moves = entry(many).moves
    assert moves is not None
    assert moves.topics == 5000
    assert len(moves.sample) == SAMPLE_SIZE
    assert len(moves.leaving) == BROKERS_SHOWN
    assert len(str(moves)) < 2500


def test_a_cluster_of_changes_is_cut_and_counted():
    brokers = [replace(demoted(n), broker=n) for n in range(200)]
    made = entry(deciding(*brokers), verdicts={n: verdict(n, facts=40) for n in range(200)})
    assert (len(made.changes), made.more_changes) == (CHANGES_SHOWN, 200 - CHANGES_SHOWN)
    assert made.changes[0].evidence[EVIDENCE_SIZE:] == (f"and {40 - EVIDENCE_SIZE} more",)


def test_a_load_plan_wave_is_logged_with_digest_and_approver():
    applied = PlanApplication("0123456789abcdef", 90, START, START, taken_up=30)
    step = entry(Plan(), application=applied, approved_by="field manager kubectl-annotate").plan
    assert step is not None
    assert (step.digest, step.taken_up, step.moves) == ("0123456789abcdef", 30, 90)
    assert step.approved_by == "field manager kubectl-annotate"


def test_an_unchanged_load_plan_gives_no_entry():
    applied = PlanApplication("0123456789abcdef", 90, START, START, taken_up=30)
    record = replace(NOTHING, application=applied)
    assert noted(Plan(), record) is None
    ended = replace(applied, ended=ApplicationEnd.DONE)
    step = entry(Plan(), record, application=ended).plan
    assert step is not None
    assert step.ended == "Done"


def test_every_wave_of_a_return_is_logged_with_its_share():
    promoted = replace(NOTHING, demoted={1: demoted()})
    first = Plan(decisions=Decisions({}, (1,), returning={1: returning(1, 10)}), withheld={1: 27})
    well = {1: verdict(1, HealthState.HEALTHY)}
    changes = entry(first, promoted, verdicts=well).changes
    assert [(c.word, c.demoted) for c in changes] == [("signals", False), ("waves", False)]
    assert_wording(changes[1].message)
    forced = entry(replace(first, withheld={}, early={1: 27}), promoted, verdicts=well).changes
    assert_wording(forced[1].message)
    state = replace(NOTHING, returning={1: returning(1, 10)})
    assert noted(first, state) is None
    last = entry(Plan(), state).changes
    assert [(c.word, c.message) for c in last] == [("waves", "all of its leaders are restored")]


def test_wave_that_is_rolled_back_is_logged_as_a_demotion():
    state = replace(NOTHING, returning={1: returning(1, 50)})
    (change,) = entry(Plan(decisions=Decisions({}, returning={1: returning(1, 0)})), state).changes
    assert (change.demoted, change.reason) == (True, "RestoringInWaves")


def test_broken_link_is_logged_at_both_ends_when_leaders_move():
    link = Link(1, 2)
    broken = BrokenLink(link, START)

    def changes(was: BrokenLink | None, now: BrokenLink | None) -> set[tuple[str, bool]]:
        before, after_it = ({} if one is None else {link: one} for one in (was, now))
        plan = Plan(decisions=Decisions({}, links=LinkDecisions(after_it)))
        found = noted(plan, replace(NOTHING, links=before))
        assert found is None or [c.broker for c in found.changes] == [1, 2]
        return {(c.message, c.demoted) for c in found.changes} if found is not None else set()

    some, most = (replace(broken, wave=returning(1, share)) for share in (10, 100))
    away = {("brokers 1 and 2 do not reach each other: others lead what they share", True)}
    back = {("brokers 1 and 2 may lead again what they share", False)}
    assert changes(None, broken) == changes(some, broken) == changes(most, broken) == away
    assert changes(broken, some) == {("brokers 1 and 2 may lead 10 % of what they share again", False)}
    assert changes(some, most) == changes(broken, None) == back
    assert changes(most, None) == changes(some, some) == set()


def test_the_outcome_counts_what_was_done_and_what_was_held():
    held = tuple(Hold(PartitionKey("id", n), "orders", Reason.NO_ANSWER, "") for n in range(3))
    result = ExecutionResult(7, 5, held, held[:1], Refusal(Reason.NO_ANSWER, "no answer in 2 s"))
    outcome = complete_entry(entry(Plan(moves=(move(0),))), result).outcome
    assert outcome is not None
    assert (outcome.reordered, outcome.elected, outcome.touched) == (7, 5, 1)
    assert outcome.held == {"NoAnswer": 3}
    assert_wording(outcome.stopped)


def test_two_entries_are_the_same_whenever_they_were():
    one = entry(Plan(moves=(move(0),)))
    assert one.same(replace(one, at=after(60)))
    assert not one.same(entry(Plan(moves=(move(1),))))
    both = one.again(replace(one, at=after(60)))
    assert (both.at, both.times, both.last) == (one.at, 2, after(60))


@pytest.mark.parametrize("broker", [1, 2])
def test_entry_names_brokers_that_leaders_left_and_came_to(broker: int):
    assert broker in entry(Plan(moves=(move(0),))).brokers()
    assert 3 not in entry(Plan(moves=(move(0),))).brokers()


def test_a_permanent_hold_gives_no_entry():
    assert noted(Plan(holds=(Hold(PartitionKey("id", 0), "orders", Reason.ONLY_REPLICA, ""),))) is None


def test_lost_orders_are_those_of_this_cluster_and_of_last_days():
    kept = with_orders(AuditEntry(START, CLUSTER_ID, 1), [move(0), move(1)._replace(seen=(2, 3, 1))], 2)
    (found,) = lost_orders([kept], CLUSTER_ID, after(60)).values()
    assert (found.baseline, found.written, found.state) == ((1, 2, 3), (1, 2, 3), EntryState.RESTORED)
    assert found.outstanding == (SentOrder((2, 3, 1), 2),)
    assert lost_orders([kept], "another-cluster", after(60)) == {}
    assert lost_orders([kept], CLUSTER_ID, START + ORDERS_LOOKED_AT + timedelta(seconds=1)) == {}


def test_orders_of_one_partition_to_two_brokers_are_both_awaited():
    entries = [with_orders(AuditEntry(START, CLUSTER_ID, 1), [move(0)], broker) for broker in (2, 3)]
    (found,) = lost_orders(entries, CLUSTER_ID, after(60)).values()
    assert found.outstanding == (SentOrder((2, 3, 1), 3), SentOrder((2, 3, 1), 2))


def test_an_entry_keeps_a_limited_number_of_orders():
    assert (
        len(with_orders(AuditEntry(START, CLUSTER_ID, 1), map(move, range(ORDERS_KEPT + 1)), 2).orders) == ORDERS_KEPT
    )
