from __future__ import annotations

from dataclasses import replace

from bellwether_load.page.plan_summary import FORMER, HEAVIEST, Flow, tell
from bellwether_load.plan.problem import NO_BROKER
from bellwether_load.plan.rebalance_plan import move_of
from testkit.loads.plan_pages import former, plan_of_size, small_plan
from testkit.loads.small_planner import slot


def test_the_heaviest_moves_are_kept_the_heaviest_first() -> None:
    plan, moves = plan_of_size(12, moves=200)
    found = tell(plan, iter(moves)).heaviest
    assert [m.load for m in found] == sorted((m.load for m in moves), reverse=True)[:HEAVIEST]


def test_of_equal_moves_the_first_stay() -> None:
    plan, _ = small_plan()
    moves = [move_of(slot(i), 2, 7) for i in range(HEAVIEST + 5)]
    assert tell(plan, moves).heaviest == tuple(moves[:HEAVIEST])


def test_leaders_are_counted_by_broker_and_by_rack() -> None:
    plan, _ = plan_of_size(3)
    reorder = move_of(slot(9, (1, 2), leader=2), 2, 1)
    moves = [move_of(slot(0), 2, 10), move_of(slot(1), 2, 5), move_of(slot(2, leader=NO_BROKER), 3, 1), reorder]
    story = tell(plan, moves)
    assert (story.left, story.came) == ({1: 2, NO_BROKER: 1}, {2: 2, 3: 1})
    assert story.flows == {("zone-b", "zone-c"): Flow(2, 15), ("no leader", "zone-a"): Flow(1, 1)}
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
