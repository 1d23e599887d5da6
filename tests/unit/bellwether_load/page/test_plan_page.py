"""The page of a plan: whole, on its own, legible, and saying what a person needs to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.objective import Objective
from bellwether_load.page.plan_page import plan_page
from bellwether_load.page.plan_summary import FORMER, HEAVIEST, tell
from bellwether_load.page.plan_text import pinned_text, waves_text
from bellwether_load.plan.certificate import CertificateLevel, HourlyProof
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss
from bellwether_load.plan.problem import NO_BROKER
from bellwether_load.plan.rebalance_plan import BY_HAND, MoveTotals, RebalancePlan
from testkit.loads.plan_pages import former, needs, plan_of_size, said, small_plan, taken_apart
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_planner import led, move_of, planned, problem, slot
from testkit.messages import assert_wording

SIZES = [1, 3, 12, 48, 49, 1000]
SEEN = Forecast(168, BrokerHour(3, 38, 7e7), BrokerHour(1, 39, 5e7))


def page(brokers: int, history: Sequence[RebalancePlan] = (), **change: object) -> str:
    plan, moves = plan_of_size(brokers) if brokers > 1 else (plan_of_size(brokers, moves=0)[0], [])
    return plan_page(tell(replace(plan, **change), moves, history, "s3://lake/bellwether"))  # type: ignore[arg-type]


@pytest.mark.parametrize("brokers", SIZES)
def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(brokers: int) -> None:
    text = page(brokers)
    assert needs(text) == []
    root = taken_apart(text)
    assert [child.tag for child in root] == ["head", "body"]
    policy = next(m for m in root.iter("meta") if m.get("http-equiv"))
    assert policy.get("content", "").startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_the_page_says_how_good_the_plan_is_and_what_it_moves() -> None:
    plan, moves = small_plan()
    text = said(taken_apart(plan_page(tell(plan, moves, (), "STORE"))))
    assert "The busiest broker goes from 63.00 MB/s to 35.00 MB/s (−44.4 %). No plan can bring it below" in text
    assert plan.digest in text
    assert plan.problem_digest in text
    assert "kafka/main, Kafka cluster memory-cluster As of 2026-11-21 12:00 UTC: measured 2026-11-07" in text
    for move in moves:
        assert str(move.name) in text
    assert f"bellwether approve {plan.digest} --policy main -n kafka" in text
    assert "are not in the store any more (the last five of a policy are kept), so it cannot be verified" in text
    known = replace(tell(plan, moves, (), "STORE"), problem="one", loads="two")
    folders = f"--problem STORE/problems/one --loads STORE/loads/two --plan STORE/plans/{plan.digest}"
    assert f"bellwether verify-plan {folders}" in said(taken_apart(plan_page(known)))


def test_a_plan_made_by_hand_has_the_command_that_applies_it() -> None:
    plan, moves = small_plan()
    by_hand = replace(plan, policy=BY_HAND)
    text = said(taken_apart(plan_page(tell(by_hand, moves, (), "s3://lake/x y"))))
    assert "bellwether rebalance --bootstrap HOST:PORT --store 's3://lake/x y' --approve" in text
    assert f" --approve {plan.digest} --record FILE" in text
    assert "--policy" not in text


def test_evidence_verdict_and_approval_come_before_all_figures() -> None:
    text = said(taken_apart(page(12)))
    assert "This is the policy's only plan in the store." in text
    parts = ("measured 2026-11-07 to 2026-11-21, 168 of 168", "No plan can bring it", "Approve", "gap to the bound")
    assert sorted(parts, key=text.index) == list(parts)
    assert "bytes in them 100.0 %" in text
    most = max(b.before for b in plan_of_size(12)[0].brokers if b.rack == "zone-a")
    assert f"zone-a 4 {most / 1e6:,.1f}" in text


def test_a_plan_that_rests_on_too_little_has_no_command_to_approve_it() -> None:
    plan, moves = small_plan()
    thin = replace(plan, evidence=replace(plan.evidence, hours=1, share=0.5))
    text = said(taken_apart(plan_page(tell(thin, moves))))
    assert "Too little is measured for a proposal, unless the minimum is lowered: 1 of 24 hours measured" in text
    assert "bellwether approve" not in text


def test_the_page_says_what_the_waves_take_and_cost() -> None:
    plan, _ = small_plan()
    many = replace(plan, moved=replace(plan.moved, partitions=1_200, reordered=1))
    assert_wording([waves_text(one) for one in (many, plan, replace(plan, moved=MoveTotals(0, 0, 0, 0)))])


def test_loads_by_hour_are_said_not_to_be_pinned() -> None:
    assert_wording(pinned_text(replace(small_plan()[0], forecast=SEEN)), pinned_text(small_plan()[0]))


def test_the_busiest_hour_comes_after_the_verdict_and_before_the_bound() -> None:
    assert "By the hours of the week" not in said(taken_apart(page(3)))
    text = said(taken_apart(page(3, forecast=SEEN, without_consumption=2)))
    assert "70.0 MB/s before (broker 3, Tuesday 14:00 UTC) and 50.0 MB/s after (broker 1, Tuesday 15:00 UTC)" in text
    parts = ("No plan can bring it below", "By the hours of the week", "It counts as 0", "Why not lower")
    assert sorted(parts, key=text.index) == list(parts)


def test_the_page_says_how_good_the_busiest_hour_is() -> None:
    proof = HourlyProof({38: {1: 1}}, 0, None, 4.9e7)
    with_proof = replace(small_plan()[0].certificate, hourly=proof)
    text = said(taken_apart(page(3, forecast=SEEN, certificate=with_proof)))
    assert "No plan can bring it below 49.0 MB/s: this one is at most 2.04 % above the best possible." in text


# Charts


@pytest.mark.parametrize("brokers", [3, 12, 48, 1000])
def test_each_broker_has_a_row_with_figures_and_a_bar(brokers: int) -> None:
    root = taken_apart(page(brokers))
    plan, _ = plan_of_size(brokers)
    rows = [said(row) for row in root.iter("tr")]
    for b in plan.brokers:
        assert any(row.startswith(f"{b.id} {b.rack} 100 {b.before / 1e6:,.1f} {b.after / 1e6:,.1f} ") for row in rows)
    bars = [svg for svg in root.iter("svg") if svg.get("class") == "bar"]
    assert len(bars) == brokers + 3 + min(brokers, 48) * (brokers > 48)  # of the racks, and the busiest once more
    for mark in (mark for svg in bars for mark in svg):
        for name in ("width", "x1", "x2"):
            assert 0 <= float((mark.get(name) or "0%").removesuffix("%")) <= 100


def test_of_many_brokers_the_busiest_are_shown_and_all_are_folded() -> None:
    root = taken_apart(page(1000))
    folded = next(root.iter("details"))
    assert len(list(folded.iter("tr"))) == 1 + 1000
    assert len([svg for svg in root.iter("svg") if svg.get("class") == "bar"]) == 48 + 1000 + 3
    plan, _ = plan_of_size(1000)
    first = max(plan.brokers, key=lambda b: max(b.before, b.after))
    shown = [said(row) for row in root.iter("tr")]
    assert next(row for row in shown if "zone-" in row).startswith(f"{first.id} ")


def test_closed_brokers_are_drawn_apart() -> None:
    plan, moves = plan_of_size(6, closed=(2, 5))
    text = plan_page(tell(plan, moves))
    shut = [r for svg in taken_apart(text).iter("svg") if svg.get("class") == "bar" for r in svg.iter("rect")]
    assert sum(r.get("class") == "shut" for r in shut) == 2
    assert "4 open brokers, 2 closed" in said(taken_apart(text))


def test_the_worst_losses_are_shown_before_and_after_the_plan() -> None:
    plan, moves = small_plan()
    loss = PlanLoss("broker", WorstLoss("1", 2, 70e6), WorstLoss("3", 1, 42e6), 40e6, {}, {}, None)
    text = said(taken_apart(plan_page(tell(replace(plan, losses=PlanLosses((loss,))), moves))))
    assert "busiest then before, MB/s after bound times the busiest broker 3 1 70.00 42.00 40.00 1.20" in text
    without = said(taken_apart(plan_page(tell(plan, moves))))
    assert "If a broker or a rack is lost" not in without
    assert "Per rack" not in without, "one rack needs no view of racks"


def test_former_plans_are_in_a_table_with_bars() -> None:
    plan, moves = plan_of_size(12)
    text = plan_page(tell(plan, moves, [former(plan, 1), former(plan, 30)]))
    root = taken_apart(text)
    words, history = said(root), next(s for s in root.iter("section") if s.findtext("h2") == "History")
    assert len(list(history.iter("svg"))) == 3
    assert f"{1:016x}" in words
    assert "2026-10-22 12:00" in words
    assert f"{plan.digest} (this plan)" in words


def test_phones_dark_screens_and_paper_have_their_styles() -> None:
    text = page(49)
    style = next(taken_apart(text).iter("style")).text or ""
    for media in ("@media (max-width: 760px)", "prefers-color-scheme: dark", "@media print"):
        assert media in style


# The bound and the cap


def test_the_page_names_the_brokers_and_partitions_that_prove_the_bound() -> None:
    posed = problem(slot(0, held="Excluded"), *(slot(i) for i in range(1, 6)))
    known = led(posed, 9e6, *[1e6] * 5)
    plan, moves = planned(posed, known)
    text = plan_page(tell(plan, moves).verified(rechecked(posed, known, plan, moves)))
    words = said(taken_apart(text))
    assert "Why not lower No plan brings the busiest broker below 27.00 MB/s. Broker 1 cannot go lower" in words
    assert "orders-0 1 27.00 100.0 % must stay" in words
    rows = [said(row) for row in taken_apart(text).iter("tr")]
    assert [any(row.startswith(start) for row in rows) for start in ("\N{BLACK DIAMOND} 1 –", "2 –")] == [True, True]


def test_without_problem_and_loads_the_brokers_alone_are_named() -> None:
    plan, moves = small_plan()
    some = replace(plan, certificate=replace(plan.certificate, weights={1: 1, 2: 0}))
    words = said(taken_apart(plan_page(tell(some, moves))))
    assert "The proof of the bound rests on broker 1, or on a single partition." in words
    assert "The partitions cannot be named" in words


def test_a_plan_that_fails_its_verification_is_not_recommended() -> None:
    plan, moves = small_plan()
    story = replace(tell(plan, moves), faults=("bound: wrong", "gap: wrong", "a", "b"))
    words = said(taken_apart(plan_page(story)))
    assert "Do not approve this plan: it does not pass verification. bound: wrong; gap: wrong; a (and 1 more)." in words


def test_the_page_says_what_the_cap_costs() -> None:
    plan, moves = small_plan()
    proof = replace(plan.certificate, weights={1: 1}, move_weight=150_000_000)
    capped = replace(plan, certificate=proof, objective=Objective(max_moves=4))
    words = said(taken_apart(plan_page(tell(capped, moves))))
    assert "Each further leader that maxMoves 4 lets change lowers the bound by at most 1.50 MB/s." in words
    capped = replace(capped, certificate=replace(proof, move_weight=2**62))
    assert "maxMoves 4 decides the bound." in said(taken_apart(plan_page(tell(capped, moves))))


def test_a_cap_that_costs_nothing_is_said_to() -> None:
    words = said(taken_apart(page(12, objective=Objective(max_moves=1_000))))
    assert "The bound would be the same without maxMoves 1,000." in words
    assert "What the cap costs" not in said(taken_apart(page(12)))


# Odd plans


def test_a_plan_that_moves_nothing_says_so() -> None:
    plan, _ = small_plan()
    same = tuple(replace(b, after=b.before) for b in plan.brokers)
    still = replace(plan, moved=replace(plan.moved, partitions=0, load=0), brokers=same)
    text = said(taken_apart(plan_page(tell(still, ()))))
    assert "Nothing moves: the busiest broker stays at 63.00 MB/s." in text
    assert "No leader moves." in text


def test_a_plan_without_any_load_has_a_page() -> None:
    plan, _ = small_plan()
    idle = replace(
        plan,
        certificate=replace(plan.certificate, bound=0.0),
        brokers=tuple(replace(b, before=0.0, after=0.0) for b in plan.brokers),
        moved=replace(plan.moved, partitions=0, load=0, lower_bound=0),
    )
    assert needs(plan_page(tell(idle, ()))) == []


def test_a_plan_with_nothing_proved_says_so() -> None:
    plan, moves = small_plan()
    proof = replace(plan.certificate, bound=0.0)
    text = said(taken_apart(plan_page(tell(replace(plan, certificate=proof), moves))))
    assert "There is no proof of how much lower it could be." in text


def test_other_capacities_show_in_the_unit() -> None:
    plan, moves = plan_of_size(12)
    strong = replace(plan, brokers=(replace(plan.brokers[0], capacity=200), *plan.brokers[1:]))
    assert "load, MB/s per 100 units of capacity" in plan_page(tell(strong, moves))
    assert "per 100 units" not in plan_page(tell(plan, moves))


def test_topics_without_measured_consumption_are_named() -> None:
    plan, moves = plan_of_size(12)
    topics = {f"topic-{n}": n for n in range(1, 8)}
    story = replace(tell(replace(plan, without_consumption=28, partitions=40), moves), unmeasured=topics)
    words = said(taken_apart(plan_page(story)))
    named = "topic-7 (7), topic-6 (6), topic-5 (5), topic-4 (4), topic-3 (3) and 2 more topics"
    assert f"Not measured: {named}." in words


def test_consumption_that_is_not_measured_is_said_unless_it_weighs_nothing() -> None:
    sentence = "The consumption of 1,200 partitions is not measured. It counts as 0"
    assert sentence in page(12, without_consumption=1_200)
    assert sentence not in page(12, without_consumption=1_200, objective=Objective(consumption=False))
    assert "not measured" not in page(12)


def test_the_brokers_below_the_busiest_have_their_own_figures_and_bound() -> None:
    plan, moves = small_plan()
    level = CertificateLevel((1,), 35e6, {2: 1, 3: 1}, 0, None, 24e6)
    lower = replace(plan, certificate=replace(plan.certificate, levels=(level,)))
    text = said(taken_apart(plan_page(tell(lower, moves))))
    before = max(b.before for b in plan.brokers if b.id != 1) / 1e6
    assert f"1 {before:.2f} 35.00 24.00 45.83 %" in text
    assert "Below the busiest" not in said(taken_apart(plan_page(tell(plan, moves))))


def test_a_bound_that_rests_on_the_cap_says_so() -> None:
    plan, moves = small_plan()
    limited = replace(plan, certificate=replace(plan.certificate, move_weight=5))
    text = said(taken_apart(plan_page(tell(limited, moves))))
    assert f"No plan that changes {plan.moved.partitions} leaders or fewer can bring it below" in text


def test_the_requested_cap_and_racks_are_on_the_page() -> None:
    text = said(taken_apart(page(12, objective=Objective(preferred_racks=("zone-a", "zone-b"), max_moves=1000))))
    assert "preferred racks zone-a, zone-b" in text
    assert "1,000 leaders, plus mandatory moves" in text


# Strangers' names


@given(st.text(min_size=1, max_size=60))
def test_no_name_becomes_part_of_the_page(name: str) -> None:
    plan, moves = small_plan()
    hostile = replace(
        plan,
        policy=f"{name}/{name}",
        cluster_id=name,
        brokers=tuple(replace(b, rack=f"{name}{b.id}") for b in plan.brokers),
        objective=Objective(preferred_racks=(name,)),
    )
    renamed = [m._replace(topic=name) for m in moves]
    plain = plan_page(tell(replace(plan, brokers=tuple(replace(b, rack=f"r{b.id}") for b in plan.brokers)), moves))
    text = plan_page(tell(hostile, renamed, (), f"s3://{name}"))
    assert needs(text) == []
    assert [e.tag for e in taken_apart(text).iter()] == [e.tag for e in taken_apart(plain).iter()]


def test_names_in_commands_are_quoted_for_the_shell() -> None:
    text = said(taken_apart(page(3, policy="kafka/x; rm -rf ~")))
    assert "--policy 'x; rm -rf ~' -n kafka" in text


# What the page is made from


def test_the_heaviest_moves_are_kept_the_heaviest_first() -> None:
    plan, moves = plan_of_size(12, moves=200)
    found = tell(plan, iter(moves)).heaviest
    assert [m.load for m in found] == sorted((m.load for m in moves), reverse=True)[:HEAVIEST]


def test_of_equal_moves_the_first_stay() -> None:
    plan, _ = small_plan()
    moves = [move_of(slot(i), 2, 7) for i in range(HEAVIEST + 5)]
    assert tell(plan, moves).heaviest == tuple(moves[:HEAVIEST])


def test_leaders_are_counted_by_broker() -> None:
    plan, _ = plan_of_size(3)
    reorder = move_of(slot(9, (1, 2), leader=2), 2, 1)
    moves = [move_of(slot(0), 2, 10), move_of(slot(1), 2, 5), move_of(slot(2, leader=NO_BROKER), 3, 1), reorder]
    story = tell(plan, moves)
    assert (story.left, story.came) == ({1: 2, NO_BROKER: 1}, {2: 2, 3: 1})
    assert reorder not in story.heaviest


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
