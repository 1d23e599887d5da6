"""What an operator keeps in a store for its rebalances: nothing that lies there is taken on trust."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.settings.objective import Objective
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.problem import BrokerInput, Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, plan_store, problem_files
from bellwether_load.store.plans.plan_store import KEPT, FilePlanStore
from bellwether_load.store.store_errors import PlanUnfit, StoreDamaged
from testkit.loads.approved_plans import write_plan
from testkit.loads.digest_lines import input_digest
from testkit.loads.small_planner import again, loads, planned, problem, slot, write_loads

NAME = "kafka.main.at-1"
POSED = problem(*(slot(i, (1, 2, 3)) for i in range(6)))
DIGEST = input_digest(POSED)
KNOWN = loads(POSED, *([100.0] * 6))


def made(posed: Problem = POSED) -> tuple[RebalancePlan, tuple[RebalanceMove, ...]]:
    return planned(posed, KNOWN)


def work(
    store: Store, plan: RebalancePlan | None = None, moves: tuple[RebalanceMove, ...] | None = None
) -> RebalancePlan:
    """What the job leaves."""
    usual, usual_moves = made()
    write_loads(store, NAME, KNOWN)
    write_plan(store, plan or usual, moves if moves is not None else usual_moves)
    return plan or usual


def test_a_problem_is_there_once_it_was_put(shelf: FilePlanStore, store: Store):
    assert not shelf.has_problem(NAME)
    shelf.put_problem(NAME, POSED)
    assert shelf.has_problem(NAME)
    assert problem_files.read_problem(store, NAME) == POSED


def test_the_plan_of_a_problem_is_found_among_others_and_rechecked(shelf: FilePlanStore, store: Store):
    shelf.put_problem(NAME, POSED)
    another = replace(POSED, header=replace(POSED.header, made_at=POSED.header.made_at.replace(hour=3)))
    work(store, *made(another))
    plan = work(store)
    why = "All 3 open brokers prove the bound: it is their mean."
    found = shelf.plan_for(NAME, DIGEST)
    assert (found.plan, found.report.forced) == (plan, 0)
    assert found.report.reasons == why


def test_leaders_that_may_not_stay_are_counted(shelf: FilePlanStore, store: Store):
    brokers = tuple(BrokerInput(b, f"rack-{b}") for b in (1, 2, 3))
    racks = problem(*POSED.partitions, brokers=brokers, objective=Objective(preferred_racks=("rack-2",)))
    digest = shelf.put_problem(NAME, racks)
    work(store, *planned(racks, KNOWN))
    assert shelf.plan_for(NAME, digest).report.forced == 6


def test_plan_with_more_moves_than_are_held_is_refused(
    shelf: FilePlanStore, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put_problem(NAME, POSED)
    plan = work(store)
    monkeypatch.setattr(plan_store, "MOST_MOVES", 1)
    with pytest.raises(PlanUnfit, match="set a smaller"):
        shelf.accepted(plan.digest)


def test_a_job_without_a_plan_is_named(shelf: FilePlanStore):
    shelf.put_problem(NAME, POSED)
    with pytest.raises(PlanUnfit, match=rf"has no plan for problem {NAME}"):
        shelf.plan_for(NAME, DIGEST)


def test_a_plan_that_boasts_is_refused(shelf: FilePlanStore, store: Store):
    plan, moves = made()
    boast = replace(plan, brokers=tuple(replace(b, after=b.after / 2) for b in plan.brokers))
    shelf.put_problem(NAME, POSED)
    work(store, boast, moves)
    with pytest.raises(PlanUnfit, match=rf"plan {plan.digest} is rejected: load per broker: .*after"):
        shelf.plan_for(NAME, DIGEST)


def test_a_plan_that_moves_more_than_its_digest_names_is_refused(shelf: FilePlanStore, store: Store):
    plan, moves = made()
    shelf.put_problem(NAME, POSED)
    work(store, plan, moves[:-1])
    with pytest.raises(PlanUnfit, match="plan digest"):
        shelf.plan_for(NAME, DIGEST)


def test_a_plan_of_other_loads_is_refused(shelf: FilePlanStore, store: Store):
    shelf.put_problem(NAME, POSED)
    work(store)
    write_loads(store, NAME, loads(POSED, *([101.0] * 6)))
    with pytest.raises(PlanUnfit, match="is rejected"):
        shelf.plan_for(NAME, DIGEST)


@pytest.mark.parametrize(
    "changed",
    [
        problem(*POSED.partitions, brokers=(BrokerInput(1), BrokerInput(2, capacity=50), BrokerInput(3))),
        problem(*POSED.partitions, brokers=(BrokerInput(1, why="x"), BrokerInput(2), BrokerInput(3))),
        problem(*POSED.partitions, objective=Objective(consumption=False)),
        problem(*POSED.partitions, objective=Objective(max_moves=1)),
        problem(*POSED.partitions[:-1]),
        problem(*POSED.partitions, slot(6, (1, 2, 3))),
        problem(*POSED.partitions[:-1], slot(5, (1, 3, 2))),
        problem(*POSED.partitions[:-1], slot(5, (1, 2, 3), isr=(1, 2))),
        problem(*POSED.partitions[:-1], slot(5, (1, 2, 3), leader=2)),
        problem(*POSED.partitions[:-1], slot(5, (1, 2, 3), held="Excluded")),
    ],
)
def test_a_plan_for_an_exchanged_problem_is_refused_before_and_after_its_proposal(
    shelf: FilePlanStore, store: Store, changed: Problem
):
    digest = shelf.put_problem(NAME, POSED)
    problem_files.write_problem(store, NAME, changed)
    plan = work(store, *planned(changed, KNOWN))
    text = (
        rf"problems/{NAME}: the stored problem is not the one that the operator wrote: its digest is .*, not {digest}"
    )
    with pytest.raises(PlanUnfit, match=text):
        shelf.plan_for(NAME, digest)
    with pytest.raises(PlanUnfit, match=text):
        shelf.accepted(plan.digest, digest)


def test_figures_that_change_between_two_reads_are_not_shown(
    shelf: FilePlanStore, store: Store, monkeypatch: pytest.MonkeyPatch
):
    shelf.put_problem(NAME, POSED)
    plan = work(store)
    boast = replace(plan, brokers=tuple(replace(b, after=b.after / 2) for b in plan.brokers))
    monkeypatch.setattr(plan_files, "each_plan", lambda _store: (boast,))  # the honest file is back when it is verified
    with pytest.raises(PlanUnfit, match="load per broker: broker 1 after"):
        shelf.plan_for(NAME, DIGEST)


def test_an_approved_plan_is_taken_up_with_all_its_moves(shelf: FilePlanStore, store: Store):
    shelf.put_problem(NAME, POSED)
    plan = work(store)
    taken = shelf.accepted(plan.digest)
    assert (taken.digest, taken.made_at, sorted(taken.moves)) == (plan.digest, plan.made_at, sorted(made()[1]))


def test_a_plan_is_verified_again_before_it_is_applied(shelf: FilePlanStore, store: Store):
    shelf.put_problem(NAME, POSED)
    plan = work(store)
    write_loads(store, NAME, loads(POSED, *([101.0] * 6)))
    with pytest.raises(PlanUnfit, match=rf"plan {plan.digest} is rejected"):
        shelf.accepted(plan.digest)


def test_a_plan_whose_problem_is_gone_cannot_be_verified_and_is_not_applied(shelf: FilePlanStore, store: Store):
    plan = work(store)
    with pytest.raises(PlanUnfit, match=r"its problem is not in the store any more .* request a new plan"):
        shelf.accepted(plan.digest)


def test_moves_that_were_changed_after_the_approval_are_refused(shelf: FilePlanStore, store: Store):
    plan, moves = made()
    other = (*moves[:-1], moves[-1]._replace(order=(2, 1, 3), to_leader=2))
    assert again(plan, other).digest != plan.digest
    work(store, plan, other)
    with pytest.raises(PlanUnfit, match=r"its moves have the digest [0-9a-f]{32}, they were changed"):
        shelf.accepted(plan.digest)


def test_the_plan_of_another_cluster_is_refused(store: Store):
    plan = work(store)
    with pytest.raises(PlanUnfit, match="is for Kafka cluster memory-cluster, not for another"):
        FilePlanStore(store, "another", "kafka/main").accepted(plan.digest)


def test_the_plan_of_another_policy_is_refused(store: Store):
    plan = work(store)
    with pytest.raises(PlanUnfit, match="is of policy kafka/main, not of kafka/other"):
        FilePlanStore(store, "memory-cluster", "kafka/other").accepted(plan.digest)


def test_a_missing_plan_is_named(shelf: FilePlanStore):
    with pytest.raises(PlanUnfit, match="plan 0123456789abcdef is not in the store any more"):
        shelf.accepted("0123456789abcdef")


def test_a_plan_put_into_the_folder_of_another_is_refused(shelf: FilePlanStore, store: Store):
    plan = work(store)
    for name in (plan_files.SUMS, f"{plan_files.MOVES}/part-00000.parquet"):
        data = store.read_bytes(f"{plan_files.FOLDER}/{plan.digest}/{name}")
        store.write_bytes(f"{plan_files.FOLDER}/0123456789abcdef/{name}", data)
    with pytest.raises(StoreDamaged, match="the file belongs to another plan"):
        shelf.accepted("0123456789abcdef")


def test_of_a_policys_problems_the_last_few_stay_and_those_of_others_all(shelf: FilePlanStore, store: Store):
    for number in range(KEPT + 2):
        shelf.put_problem(f"kafka.main.at-{number}", POSED)
        write_loads(store, f"kafka.main.at-{number}", KNOWN)
        shelf.put_problem(f"kafka.other.at-{number}", POSED)
    shelf.tidy("kafka.main.")
    left = {f.path.split("/")[1] for f in store.list(problem_files.FOLDER)}
    assert {name for name in left if name.startswith("kafka.main.")} == {
        f"kafka.main.at-{n}" for n in range(2, KEPT + 2)
    }
    assert len(left) == KEPT + KEPT + 2
    assert {f.path.split("/")[1] for f in store.list("loads")} == {f"kafka.main.at-{n}" for n in range(2, KEPT + 2)}


def test_a_policy_whose_name_goes_on_after_a_dot_keeps_its_problems(shelf: FilePlanStore, store: Store):
    for number in range(KEPT + 2):
        shelf.put_problem(f"kafka.main.at-{number}", POSED)
        shelf.put_problem(f"kafka.main.eu.at-{number}", POSED)
    shelf.tidy("kafka.main.")
    left = {f.path.split("/")[1] for f in store.list(problem_files.FOLDER)}
    assert len(left) == KEPT + KEPT + 2
    assert {f"kafka.main.eu.at-{number}" for number in range(KEPT + 2)} <= left


def test_a_store_below_hides_what_the_store_hides():
    below = Store.open("s3://key:secret@bucket/x?region=eu-west-1").below("problems/a")
    assert str(below) == "s3://bucket/x/problems/a"
    assert below.where("problem.json") == "s3://bucket/x/problems/a/problem.json"
