"""The report of a plan as a page: whole, on its own, and saying what a person needs to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.objective import Objective
from bellwether_load.page.plan_report import plan_page
from bellwether_load.page.plan_summary import FORMER, HEAVIEST, tell
from bellwether_load.page.plan_text import waves_text
from bellwether_load.plan.certificate import CertificateLevel, HourlyProof
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss
from bellwether_load.plan.rebalance_plan import BY_HAND, MoveTotals, RebalancePlan
from testkit.loads.plan_pages import former, needs, plan_of_size, said, small_plan, taken_apart
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_planner import led, move_of, planned, problem, slot
from testkit.messages import assert_wording

SEEN = Forecast(168, BrokerHour(3, 38, 7e7), BrokerHour(1, 39, 5e7))


def page(brokers: int, history: Sequence[RebalancePlan] = (), **change: object) -> str:
    plan, moves = plan_of_size(brokers) if brokers > 1 else (plan_of_size(brokers, moves=0)[0], [])
    return plan_page(tell(replace(plan, **change), moves, history, "s3://lake/bellwether"))  # type: ignore[arg-type]


def words(text: str) -> str:
    return said(taken_apart(text))


@pytest.mark.parametrize("brokers", [1, 3, 12, 1000])
def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(brokers: int) -> None:
    text = page(brokers)
    assert needs(text) == []
    root = taken_apart(text)
    assert [child.tag for child in root] == ["head", "body"]
    policy = next(m for m in root.iter("meta") if m.get("http-equiv"))
    assert policy.get("content", "").startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_the_page_says_how_good_the_plan_is_and_what_it_moves() -> None:
    plan, moves = small_plan()
    text = words(plan_page(tell(plan, moves, (), "STORE")))
    assert "The busiest broker goes from 63.00 MB/s to 35.00 MB/s (−44.4 %). No plan can bring it below" in text
    for move in moves:
        assert str(move.name) in text
    assert f"to approve it: bellwether approve {plan.digest} --policy main -n kafka" in text
    assert "not verified: its problem or its loads are not in the store any more" in text
    known = replace(tell(plan, moves, (), "STORE"), problem="one")
    folders = f"--problem STORE/problems/one --loads STORE/loads/one --plan STORE/plans/{plan.digest}"
    assert f"bellwether verify-plan {folders}" in words(plan_page(known))


def test_a_plan_made_by_hand_has_the_command_that_applies_it() -> None:
    plan, moves = small_plan()
    text = words(plan_page(tell(replace(plan, policy=BY_HAND), moves, (), "s3://lake/x y")))
    assert "bellwether rebalance --bootstrap HOST:PORT --store 's3://lake/x y' --approve" in text
    assert f" --approve {plan.digest} --record FILE" in text
    assert "--policy" not in text


def test_evidence_verdict_and_approval_come_before_all_figures() -> None:
    text = words(page(12))
    parts = ("measured 2026-11-07 to 2026-11-21, 168 of 168", "No plan can bring it", "to approve it", "BEFORE")
    assert sorted(parts, key=text.index) == list(parts)


def test_a_plan_that_rests_on_too_little_has_no_command_to_approve_it() -> None:
    plan, moves = small_plan()
    text = words(plan_page(tell(replace(plan, evidence=replace(plan.evidence, hours=1, share=0.5)), moves)))
    assert "Too little is measured for a proposal, unless the minimum is lowered: 1 of 24 hours measured" in text
    assert "bellwether approve" not in text


def test_the_report_says_what_the_waves_take_and_cost() -> None:
    plan, _ = small_plan()
    many = replace(plan, moved=replace(plan.moved, partitions=1_200, reordered=1))
    assert_wording([waves_text(one) for one in (many, plan, replace(plan, moved=MoveTotals(0, 0, 0, 0)))])


def test_the_page_says_how_good_the_busiest_hour_is() -> None:
    assert "By the hours of the week" not in words(page(3))
    proof = replace(small_plan()[0].certificate, hourly=HourlyProof({38: {1: 1}}, 0, None, 4.9e7))
    text = words(page(3, forecast=SEEN, certificate=proof))
    assert "70.0 MB/s before (broker 3, Tuesday 14:00 UTC) and 50.0 MB/s after (broker 1, Tuesday 15:00 UTC)" in text
    assert "No plan can bring it below 49.0 MB/s: this one is at most 2.04 % above the best possible." in text


def test_of_many_brokers_the_busiest_have_a_bar() -> None:
    text = words(page(1000))
    assert "and 980 brokers with less load" in text
    plan, _ = plan_of_size(1000)
    first = max(plan.brokers, key=lambda b: max(b.before, b.after))
    assert f"bound) {first.id} {first.rack} {first.before / 1e6:,.1f} {first.after / 1e6:,.1f} ███" in text


def test_closed_brokers_are_marked() -> None:
    plan, moves = plan_of_size(6, closed=(2, 5))
    assert words(plan_page(tell(plan, moves))).count("ineligible") == 2


def test_the_worst_losses_are_said() -> None:
    plan, moves = small_plan()
    loss = PlanLoss("broker", WorstLoss("1", 2, 70e6), WorstLoss("3", 1, 42e6), 40e6, {}, {}, None)
    text = words(plan_page(tell(replace(plan, losses=PlanLosses((loss,))), moves)))
    assert "worst loss of one broker: without broker 3, broker 1 carries 1.20 times the busiest broker" in text


def test_former_plans_are_in_a_table() -> None:
    plan, moves = plan_of_size(12)
    text = words(plan_page(tell(plan, moves, [former(plan, 1), former(plan, 30)])))
    assert f"2026-10-22 12:00 UTC {30:016x}" in text
    assert "PLANS OF THE POLICY" not in words(page(12))


# The bound and the cap


def test_the_page_says_what_decides_the_bound() -> None:
    posed = problem(slot(0, held="Excluded"), *(slot(i) for i in range(1, 6)))
    known = led(posed, 9e6, *[1e6] * 5)
    plan, moves = planned(posed, known)
    text = words(plan_page(tell(plan, moves).verified(rechecked(posed, known, plan, moves))))
    assert "Broker 1 cannot go lower" in text
    assert "not verified" not in text


def test_without_problem_and_loads_the_brokers_alone_are_counted() -> None:
    plan, moves = small_plan()
    some = replace(plan, certificate=replace(plan.certificate, weights={1: 1, 2: 0}))
    assert "The proof of the bound rests on 1 of 3 open brokers, or on a single" in words(plan_page(tell(some, moves)))


def test_a_plan_that_fails_its_verification_is_not_recommended() -> None:
    plan, moves = small_plan()
    text = words(plan_page(replace(tell(plan, moves), faults=("bound: wrong", "gap: wrong", "a", "b"))))
    assert "Do not approve this plan: it does not pass verification. bound: wrong; gap: wrong; a (and 1 more)." in text
    assert "bellwether approve" not in text


def test_the_page_says_what_the_cap_costs() -> None:
    plan, moves = small_plan()
    proof = replace(plan.certificate, weights={1: 1}, move_weight=150_000_000)
    capped = replace(plan, certificate=proof, objective=Objective(max_moves=4))
    text = words(plan_page(tell(capped, moves)))
    assert "Each further leader that maxMoves 4 lets change lowers the bound by at most 1.50 MB/s." in text
    assert f"No plan that changes {plan.moved.partitions} leaders or fewer can bring it below" in text
    capped = replace(capped, certificate=replace(proof, move_weight=2**62))
    assert "maxMoves 4 decides the bound." in words(plan_page(tell(capped, moves)))


def test_a_cap_that_costs_nothing_is_said_to() -> None:
    text = words(page(12, objective=Objective(max_moves=1_000)))
    assert "The bound would be the same without maxMoves 1,000." in text
    assert "maxMoves" not in words(page(12))


# Odd plans


def test_a_plan_that_moves_nothing_says_so() -> None:
    plan, _ = small_plan()
    same = tuple(replace(b, after=b.before) for b in plan.brokers)
    text = words(plan_page(tell(replace(plan, moved=MoveTotals(0, 0, 0, 0), brokers=same), ())))
    assert "Nothing moves: the busiest broker stays at 63.00 MB/s." in text
    assert "bellwether approve" not in text


def test_a_plan_without_any_load_has_a_page() -> None:
    plan, _ = small_plan()
    idle = replace(
        plan,
        certificate=replace(plan.certificate, bound=0.0),
        brokers=tuple(replace(b, before=0.0, after=0.0) for b in plan.brokers),
        moved=MoveTotals(0, 0, 0, 0),
    )
    assert needs(plan_page(tell(idle, ()))) == []


def test_a_plan_with_nothing_proved_says_so() -> None:
    plan, moves = small_plan()
    nothing = replace(plan, certificate=replace(plan.certificate, bound=0.0))
    assert "There is no proof of how much lower it could be." in words(plan_page(tell(nothing, moves)))


def test_other_capacities_show_in_the_unit() -> None:
    plan, moves = plan_of_size(12)
    strong = replace(plan, brokers=(replace(plan.brokers[0], capacity=200), *plan.brokers[1:]))
    assert "load, MB/s per 100 units of capacity" in words(plan_page(tell(strong, moves)))
    assert "per 100 units" not in plan_page(tell(plan, moves))


def test_topics_without_measured_consumption_are_named() -> None:
    plan, moves = plan_of_size(12)
    topics = {f"topic-{n}": n for n in range(1, 8)}
    story = replace(tell(replace(plan, without_consumption=28, partitions=40), moves), unmeasured=topics)
    named = "topic-7 (7), topic-6 (6), topic-5 (5), topic-4 (4), topic-3 (3) and 2 more topics"
    assert f"Not measured: {named}." in words(plan_page(story))


def test_consumption_that_is_not_measured_is_said_unless_it_weighs_nothing() -> None:
    sentence = "The consumption of 1,200 partitions is not measured. It counts as 0"
    assert sentence in words(page(12, without_consumption=1_200))
    assert sentence not in words(page(12, without_consumption=1_200, objective=Objective(consumption=False)))
    assert "is not measured" not in words(page(12))


def test_the_brokers_below_the_busiest_have_their_own_figures_and_bound() -> None:
    plan, moves = small_plan()
    level = CertificateLevel((1,), 35e6, {2: 1, 3: 1}, 0, 24e6)
    text = words(plan_page(tell(replace(plan, certificate=replace(plan.certificate, levels=(level,))), moves)))
    before = max(b.before for b in plan.brokers if b.id != 1) / 1e6
    assert f"without the 1 above {before:.2f} MB/s 35.00 MB/s bound 24.00 MB/s, gap 45.83 %" in text


# Strangers' names


@given(st.text(min_size=1, max_size=60))
def test_no_name_becomes_part_of_the_page(name: str) -> None:
    plan, moves = small_plan()
    hostile = replace(
        plan,
        policy=f"{name}/{name}",
        cluster_id=name,
        brokers=tuple(replace(b, rack=f"{name}{b.id}") for b in plan.brokers),
    )
    renamed = [m._replace(topic=name) for m in moves]
    text = plan_page(tell(hostile, renamed, (), f"s3://{name}"))
    assert needs(text) == []
    tags = {e.tag for e in taken_apart(text).iter()}
    assert tags == {"html", "head", "meta", "title", "style", "body", "pre", "span"}


def test_what_turns_text_around_or_looks_like_another_line_is_replaced() -> None:
    plan, moves = small_plan()
    text = plan_page(tell(plan, [m._replace(topic="a\u202eb\nc\x1bd") for m in moves]))
    assert "a?b?c?d-" in text


def test_names_in_commands_are_quoted_for_the_shell() -> None:
    assert "--policy 'x; rm -rf ~' -n kafka" in words(page(3, policy="kafka/x; rm -rf ~"))


# What the report is made from


def test_the_heaviest_moves_are_kept_the_heaviest_first() -> None:
    plan, moves = plan_of_size(12, moves=200)
    found = tell(plan, iter(moves)).heaviest
    assert [m.load for m in found] == sorted((m.load for m in moves), reverse=True)[:HEAVIEST]


def test_of_equal_moves_the_first_stay_and_reorders_are_left_out() -> None:
    plan, _ = small_plan()
    moves = [move_of(slot(i), 2, 7) for i in range(HEAVIEST + 5)]
    reorder = move_of(slot(99, (1, 2), leader=2), 2, 9)
    assert tell(plan, [reorder, *moves]).heaviest == tuple(moves[:HEAVIEST])


def test_the_history_is_the_policys_own_oldest_first_with_this_plan() -> None:
    plan, moves = small_plan()
    others = [replace(former(plan, 1), policy="kafka/other"), replace(former(plan, 2), cluster_id="x")]
    mine = [former(plan, 3), former(plan, 5)]
    assert tell(plan, moves, [*others, *mine]).history == (mine[1], mine[0], plan)
    assert tell(plan, moves, [plan, *mine]).history == (mine[1], mine[0], plan)


def test_a_long_history_is_cut_to_its_newest() -> None:
    plan, moves = small_plan()
    history = tell(plan, moves, [former(plan, d) for d in range(1, 200)]).history
    assert (len(history), history[-1]) == (FORMER, plan)
