from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether_load.cli.losses import losses
from bellwether_load.plan.problem import BrokerInput
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.store.plans.load_hours import write_account
from testkit.loads.small_planner import loads, problem, slot, write_loads
from testkit.messages import assert_wording

POSED = problem(
    slot(0, (1, 2, 3)),
    slot(1, (1, 2, 3)),
    slot(2, (2, 3, 1)),
    slot(3, (3, 1, 2)),
    slot(4, (3, 1, 2)),
    brokers=[BrokerInput(1, "a"), BrokerInput(2, "b"), BrokerInput(3, "c")],
)
ACCOUNT = {
    "clusterId": "memory-cluster",
    "since": "2026-11-13T00:00:00Z",
    "until": "2026-11-27T00:00:00Z",
    "hours": 168,
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    store = Store.open(str(tmp_path))
    problem_files.write_problem(store, "main", POSED)
    write_account(store, write_loads(store, "main", loads(POSED, 3e6, 4e6, 2e6, 1e6)), ACCOUNT)
    return str(tmp_path)


def run(uri: str, *more: str) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(losses, ["--store", uri, *more])


def test_losses_are_shown_with_what_was_measured_first(uri: str) -> None:
    found = run(uri)
    assert found.exit_code == 0, found.output
    assert_wording(found.output)
    assert found.output.startswith(
        "measured 2026-11-13 to 2026-11-27, 168 of 168 hours, 4 of 5 partitions, 80 % of the bytes"
    )


def test_partitions_that_would_have_no_leader_are_counted(tmp_path: Path) -> None:
    store, posed = Store.open(str(tmp_path)), problem(slot(0, (1,)), slot(1, (1, 2)), slot(2, (1, 3), isr=(1,)))
    problem_files.write_problem(store, "main", posed)
    write_account(store, write_loads(store, "main", loads(posed, 3e6, 4e6, 2e6)), ACCOUNT)
    found = run(str(tmp_path)).output
    assert "up to 2 partitions would have no leader (LEADERLESS): no other replica in the ISR may lead" in found


def test_a_document_has_every_loss(uri: str) -> None:
    found = json.loads(run(uri, "-o", "json").output)
    assert found["evidence"]["measured"] == 4
    assert [(loss["kind"], loss["lost"], loss["busiest"]) for loss in found["losses"][:2]] == [
        ("broker", 1, 2),
        ("rack", "a", 2),
    ]
    assert found["losses"][0]["decidedBy"] == ["orders-1", "orders-0"]
    assert len(found["losses"]) == 6


def test_loads_of_another_cluster_are_refused(uri: str) -> None:
    write_account(Store.open(uri), "loads/main", ACCOUNT | {"clusterId": "other"})
    found = run(uri)
    assert (found.exit_code, "are of Kafka cluster other, not of memory-cluster" in found.output) == (1, True)


def test_a_store_without_loads_is_refused(tmp_path: Path) -> None:
    found = run(str(tmp_path))
    assert found.exit_code == 1
    assert_wording(found.output.replace(str(tmp_path), "STORE"))


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    problem_files.write_problem(store, "main", POSED)
    write_account(store, write_loads(store, "main", {}), ACCOUNT)
    found = run(str(tmp_path))
    assert (found.exit_code, "no partition has a measured load" in found.output) == (1, True)
