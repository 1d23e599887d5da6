from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.cli.main import main
from bellwether_load.plan.documents import PLAN
from testkit.loads.approved_plans import write_plan
from testkit.loads.plan_pages import former, needs, plan_of_size, said, taken_apart
from testkit.loads.plan_verification import Folders, folders
from testkit.loads.small_planner import Hourly, loads, planned, problem, slot
from testkit.messages import assert_wording

POSED = problem(*(slot(i) for i in range(6)))
KNOWN = loads(POSED, *(1e6 * (i + 1) for i in range(6)))


@pytest.fixture
def written(tmp_path: Path) -> Folders:
    return folders(str(tmp_path), POSED, KNOWN)


def shown(written: Folders, *more: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(main, ["rebalance", "show", "--store", written.uri, *more])


def digest(written: Folders) -> str:
    return written.plan.rsplit("/", 1)[-1]


def test_a_plan_is_shown_with_its_figures_brokers_and_moves(written: Folders) -> None:
    found = shown(written)
    assert found.exit_code == 0, found.output
    lines = [" ".join(line.split()) for line in found.output.replace(written.uri, "STORE").splitlines()]
    assert_wording(lines[0], lines[1], lines)
    assert any(line.startswith("1 – 63.00 35.00 █") for line in lines)
    assert any(line.startswith("orders-4 1 2 10.00") for line in lines)


def test_the_busiest_hour_is_shown(written: Folders) -> None:
    hourly = Hourly((14,), {key: ([int(ins)], None) for key, (ins, _) in KNOWN.items()})
    plan, moves = planned(POSED, KNOWN, hourly=hourly)
    write_plan(written.store, plan, moves)
    found = " ".join(shown(written, plan.digest).output.replace(written.uri, "STORE").split())
    assert_wording(found)
    assert found.index("The proof of the bound rests on") < found.index("By the hours of the week")


def test_the_newest_plan_is_shown_unless_a_digest_is_given(written: Folders) -> None:
    later = replace(POSED, header=replace(POSED.header, made_at=POSED.header.made_at + timedelta(days=1)))
    plan, moves = planned(later, KNOWN)
    write_plan(written.store, plan, moves)
    assert plan.digest in shown(written).output
    assert digest(written) in shown(written, digest(written)).output.splitlines()[1]


def test_one_policys_newest_plan_can_be_asked_for(written: Folders) -> None:
    other = replace(
        POSED, header=replace(POSED.header, policy="kafka/other", made_at=POSED.header.made_at + timedelta(days=1))
    )
    write_plan(written.store, *planned(other, KNOWN))
    assert "kafka/other" in shown(written).output
    assert "kafka/main" in shown(written, "--policy", "main", "-n", "kafka").output
    missing = shown(written, "--policy", "third", "-n", "kafka")
    assert (
        missing.exit_code,
        "of policy kafka/third; it contains plans of kafka/main, kafka/other" in missing.output,
    ) == (
        1,
        True,
    )


def test_many_brokers_are_cut_to_the_busiest(written: Folders) -> None:
    plan, moves = plan_of_size(100, closed=(7,))
    write_plan(written.store, replace(plan, made_at=plan.made_at + timedelta(days=1)), moves)
    found = shown(written, "--top", "5").output
    assert "and 95 brokers with less load; --top 100 shows all" in found
    assert "and 35 lighter moves" in found
    assert len(found.splitlines()) < 40
    assert "ineligible" in shown(written, "--top", "100").output


def test_the_page_has_history_and_the_names_of_its_sources(written: Folders) -> None:
    plan, moves = planned(POSED, KNOWN)
    write_plan(written.store, former(plan, 1), moves)
    text = shown(written, "-o", "html").stdout
    assert needs(text) == []
    words = said(taken_apart(text))
    assert f"--problem {written.uri}/problems/main --loads {written.uri}/loads/main --plan" in words
    assert f"{1:016x}" in words


def test_a_plan_whose_problem_is_gone_is_not_verified(written: Folders) -> None:
    written.store.delete_directory("problems/main")
    assert "not verified: its problem or its loads are not in the store any more" in said(
        taken_apart(shown(written, "-o", "html").stdout)
    )


def test_a_plan_names_who_proves_its_bound_and_what_is_not_measured(tmp_path: Path) -> None:
    posed = problem(slot(0, held="Excluded"), *(slot(i) for i in range(1, 6)), slot(0, topic="clicks"))
    known = loads(posed, 1e6, 9e6, *[1e6] * 5) | {posed.partitions[0].key: (1e6, None)}
    found = shown(folders(str(tmp_path), posed, known))
    assert found.exit_code == 0, found.output
    text = " ".join(found.output.replace(str(tmp_path), "STORE").split())
    assert_wording(text)
    assert "orders-0 alone needs" in text
    assert "Not measured: clicks (1)." in text


def test_a_plan_that_was_changed_is_not_recommended(written: Folders) -> None:
    path = f"{written.plan}/plan.json"
    document = json.loads(written.store.read_bytes(path))
    document["certificate"]["bound"] *= 0.9
    written.store.write_bytes(path, json.dumps(document).encode())
    assert "Do not approve this plan: it does not pass verification. bound: the plan says" in shown(written).output


def test_json_is_the_plan_as_it_is_kept(written: Folders) -> None:
    found = shown(written, "-o", "json")
    assert PLAN.from_json(json.loads(found.output)).digest == digest(written)


def test_an_unknown_plan_is_named(written: Folders) -> None:
    found = shown(written, "0123456789abcdef")
    assert (found.exit_code, "plans/0123456789abcdef/plan.json: cannot be read: " in found.output) == (1, True)


def test_an_empty_store_holds_no_plan(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["rebalance", "show", "--store", str(tmp_path)])
    assert (found.exit_code, "contains no plan: run `bellwether rebalance`" in found.output) == (1, True)


def test_strangers_names_bring_no_codes_to_the_terminal(tmp_path: Path) -> None:
    topic = "[red]x\x1b[31m"
    posed = problem(*(slot(i, topic=topic) for i in range(3)))
    written = folders(str(tmp_path), posed, loads(posed, 5e6, 4e6, 3e6))
    found = shown(written)
    assert found.exit_code == 0, found.output
    assert "\x1b" not in found.output
    assert "[red]x?[31m-" in found.output
