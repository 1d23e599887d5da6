"""What a plan rests on, from the sampler's files to the first line, and what is missing for a proposal."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.rebalance import RunState
from bellwether_load.__main__ import main
from bellwether_load.cli.losses import losses
from bellwether_load.cli.show import show
from bellwether_load.controller.lifecycle import Run, on_planned
from bellwether_load.jobs.compute_plan import compute_plan, write_plan
from bellwether_load.page.plan_report import plan_page
from bellwether_load.page.plan_summary import tell
from bellwether_load.page.plan_text import summary
from bellwether_load.plan.evidence import Evidence, measured_share
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.store.plans.plan_verification import recheck
from testkit.loads.load_histories import Sample
from testkit.loads.plan_pages import said, taken_apart
from testkit.loads.sample_files import write_rounds
from testkit.loads.sample_rounds import CLUSTER
from testkit.loads.small_planner import problem, slot
from testkit.messages import assert_wording

TEN_MINUTES = 600
HOUR, DAY = 7, 145  # samples


def history(samples: int, size: int = 1_000_000) -> list[Sample]:
    return [Sample(TEN_MINUTES * n, 100 * n, size + 1000 * n, leader=1) for n in range(samples)]


def planned_from(folder: Path, histories: dict[tuple[str, int], list[Sample]], partitions: int) -> RebalancePlan:
    """The plan that the jobs make for a topic from a store with these samples."""
    store = Store.open(str(folder))
    write_rounds(store, histories)
    slots = (slot(i)._replace(topic_id=f"{'orders':_<22}") for i in range(partitions))
    problem_files.write_problem(store, "main", problem(*slots, cluster_id=CLUSTER))
    arguments = ["--store", str(folder), "--name", "main", "--engine", "process"]
    made = CliRunner().invoke(main, ["loads", *arguments])
    assert made.exit_code == 0, made.output
    found = compute_plan(str(folder), "main", "main")
    write_plan(str(folder), found)
    plan = found.plan
    report = recheck(store.below("problems/main"), store.below("loads/main"), store.below(f"plans/{plan.digest}"))
    assert report.passed, report.faults
    return plan


def lines(folder: Path, plan: RebalancePlan) -> str:
    """What is said first, alike in the terminal, on the page and in status; and what is missing for a proposal."""
    for verb in (show, losses):
        terminal = CliRunner().invoke(verb, ["--store", str(folder)])
        assert terminal.output.splitlines()[0] == plan.evidence_line, terminal.output
    page = said(taken_apart(plan_page(tell(plan, ()))))
    assert page.index(f"{plan.evidence_line} ") < page.index("busiest broker")
    run = on_planned(Run(state=RunState.RUNNING), plan, Rebalance(), summary=summary(tell(plan, ())))
    missing = plan.missing(Rebalance())
    assert run.plan is not None
    assert run.plan.summary[0] == plan.evidence_line
    assert run.state is (RunState.IDLE if missing else RunState.PROPOSED)
    assert ("to approve it" in page) is (missing == "")
    return f"{plan.evidence_line}\n{missing}"


def test_a_day_of_every_partition_is_enough(tmp_path: Path):
    plan = planned_from(tmp_path, {("orders", i): history(DAY) for i in range(4)}, 4)
    assert (plan.evidence.hours, plan.evidence.share, plan.missing(Rebalance())) == (24, 1.0, "")
    assert_wording(lines(tmp_path, plan))


def test_an_hour_names_when_a_day_will_be_complete(tmp_path: Path):
    plan = planned_from(tmp_path, {("orders", i): history(HOUR) for i in range(4)}, 4)
    assert plan.evidence.hours == 1
    assert "1 of 24 hours measured (enough after 23 more, at the earliest" in plan.missing(Rebalance())
    assert_wording(lines(tmp_path, plan))


@pytest.mark.parametrize(("size", "hours"), [(1_000_000_000, 0), (1_000, 24)])
def test_hours_are_those_of_nearly_all_bytes(tmp_path: Path, size: int, hours: int):
    recent = {("orders", i): history(DAY, size)[-2:] for i in range(1, 10)}
    plan = planned_from(tmp_path, {("orders", 0): history(DAY, 90_000_000)} | recent, 10)
    assert (plan.evidence.hours, plan.evidence.share) == (hours, 1.0)
    assert (plan.missing(Rebalance()) == "") is (hours == 24)


@pytest.mark.parametrize(("percent", "enough"), [(90, False), (96, True)])
def test_the_bytes_of_a_partition_without_load_weigh(tmp_path: Path, percent: int, enough: bool):
    measured = {("orders", i): history(DAY, percent * 10_000_000) for i in range(9)}
    seen_once = {("orders", 9): [Sample(3600, 5, 9 * (100 - percent) * 10_000_000)]}
    plan = planned_from(tmp_path, measured | seen_once, 10)
    assert plan.evidence.share == pytest.approx(percent / 100, abs=1e-4)
    assert (plan.missing(Rebalance()) == "") is enough
    assert_wording(lines(tmp_path, plan))


def test_partitions_of_a_broker_that_was_never_sampled_count(tmp_path: Path):
    plan = planned_from(tmp_path, {("orders", i): history(DAY) for i in range(8)}, 12)
    assert plan.evidence.share == pytest.approx(8 / 12)
    assert "66.6 % of the bytes measured, 95 % needed (4 of 12 partitions" in plan.missing(Rebalance())
    assert_wording(lines(tmp_path, plan))


def test_consumption_that_is_not_measured_is_on_the_first_line():
    line = Evidence(None, None, 0, 0.0).line(3, 3, 2)
    assert_wording(line)
    assert line.endswith("the consumption of 2 partitions is not measured")


@pytest.mark.parametrize(
    ("account", "share"),
    [
        ({}, 0.5),  # nothing but the counts of the problem
        ({"partitions": 10, "loads": 10, "logBytes": 0}, 0.5),  # empty logs
        ({"partitions": 5, "loads": 5, "logBytes": 500}, 0.5),  # five were never sampled
        ({"partitions": 10, "loads": 5, "logBytes": 900, "logBytesWithoutLoad": 100}, 0.9),
        ({"partitions": 20, "loads": 10, "logBytes": 900, "logBytesWithoutLoad": 100}, 0.9),  # deleted topics, too
        ({"partitions": "many", "loads": -1, "logBytes": True}, 0.5),
    ],
)
def test_shares_are_of_bytes_and_else_of_partitions(account: dict[str, object], share: float):
    assert measured_share(account, 10, 5) == pytest.approx(share)


def test_a_problem_without_partitions_lacks_no_bytes():
    assert measured_share({}, 0, 0) == 1.0


def test_a_share_is_rounded_down():
    assert "99.9 % of the bytes" in Evidence(None, None, 168, 0.99999).line(9, 0, 0)
