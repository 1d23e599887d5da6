from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given

from bellwether_load.plan import digests
from bellwether_load.plan.digests import CHUNK_LINES
from bellwether_load.plan.documents import PROBLEM, header_line
from bellwether_load.plan.forecast import BrokerHour
from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss
from bellwether_load.plan.problem import Problem
from testkit.loads.digest_lines import input_digest, plan_digest, problem_digest
from testkit.loads.plan_verification import load_problems, rechecked
from testkit.loads.small_planner import loads, move_of, move_table, partition_table, planned, problem, slot, weigh

POSED = problem(slot(0), slot(1, (2, 1), isr=(1,), leader=-1, held="Displaced"), slot(2, (3,)))
KNOWN = loads(POSED, 100.5, 7.0)


def test_a_digest_is_of_the_first_line_and_each_chunks_digest() -> None:
    posed = problem(*(slot(i) for i in range(CHUNK_LINES + 1)))
    table = partition_table(posed.partitions)
    assert digests.problem_digest(header_line(posed.header), table) == input_digest(posed)
    moves = [move_of(one, 2, 5) for one in posed.partitions]
    assert digests.plan_digest("problem", move_table(moves)) == plan_digest("problem", moves)


def test_the_digest_of_a_problem_covers_terms_partitions_and_loads_in_lines() -> None:
    lines = [
        json.dumps(PROBLEM.to_json(POSED.header), sort_keys=True, separators=(",", ":")),
        "orders\tid-of-orders\t0\t1,2,3\t1,2,3\t1\t\t100\t0",
        "orders\tid-of-orders\t1\t2,1\t1\t-1\tDisplaced\t7\t0",
        "orders\tid-of-orders\t2\t3\t3\t3\t\t-\t-",
    ]
    chunk = hashlib.sha256("".join(f"{line}\n" for line in lines[1:]).encode()).hexdigest()
    wanted = hashlib.sha256(f"{lines[0]}\n{chunk}\n".encode()).hexdigest()
    assert problem_digest(POSED.header, ((w.slot, w.rates) for w in weigh(POSED, KNOWN))) == wanted


def test_the_digest_of_a_plan_covers_the_problem_and_every_order() -> None:
    moves = [move_of(slot(0), 2, 5), move_of(slot(4), 3, 5)]
    chunk = hashlib.sha256(b"orders\tid-of-orders\t0\t2,1,3\norders\tid-of-orders\t4\t3,1,2\n").hexdigest()
    text = "p" * 64 + f"\n{chunk}\n"
    assert plan_digest("p" * 64, moves) == hashlib.sha256(text.encode()).hexdigest()[:32]


@given(load_problems())
def test_digests_are_those_that_the_verifier_finds_by_itself(drawn: tuple[Problem, Any]) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    found = {c.name: c.found for c in rechecked(posed, known, plan, moves).checks}
    assert (found["problem digest"], found["plan digest"]) == (plan.problem_digest[:32], plan.digest)


def test_an_hour_is_named_by_weekday_and_time() -> None:
    found = [BrokerHour(1, hour, 0.0).moment for hour in (0, 38, 167)]
    assert found == ["Monday 00:00 UTC", "Tuesday 14:00 UTC", "Sunday 23:00 UTC"]


def test_losses_of_a_capped_plan_are_compared_with_plans_without_cap() -> None:
    found = PlanLosses((PlanLoss("broker", WorstLoss("1", 2, 70e6), WorstLoss("3", 1, 42e6), 40e6, {}, {}, None),))
    assert found.line(35e6, capped=True) == f"{found.line(35e6)} without maxMoves"
