"""``verify-plan`` on real files: what passes, what is refused, what cannot be read, and how it says so."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings

from bellwether.cli.main import main
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.plan_verification import Folders, folders, load_problems
from testkit.loads.small_planner import loads, planned, problem, slot
from waiting import ran

POSED = problem(*(slot(i) for i in range(6)), slot(0, topic="payments"))
KNOWN = loads(POSED, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0)


LARGE_PLAN = 250_000
MANY_BROKERS = 100

# What getrusage tells began before this process did.
PEAK_MEMORY = """
import sys
from pathlib import Path

class WithoutPandas:  # the extra has none, and Arrow looks for it
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutPandas())
from bellwether.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*(l for l in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in l), file=sys.stderr)
"""


def verified(written: Folders, *more: str) -> Result:
    return CliRunner().invoke(main, ["verify-plan", *written.arguments(), *more])


@pytest.fixture
def written(tmp_path: Path) -> Folders:
    return folders(str(tmp_path), POSED, KNOWN)


def file(written: Folders, name: str) -> Path:
    place = {
        "account": f"{written.loads}/_loads.json",
        "loads": f"{written.loads}/part-0.parquet",
        "moves": f"{written.plan}/moves/part-00000.parquet",
        "partitions": f"{written.problem}/partitions.parquet",
        "plan": f"{written.plan}/plan.json",
        "problem": f"{written.problem}/problem.json",
    }
    return Path(written.uri) / place[name]


def test_a_true_plan_passes_and_every_check_is_shown_with_its_figures(written: Folders) -> None:
    found = verified(written)
    assert found.exit_code == 0, found.output
    rows = [line.split() for line in found.output.splitlines()]
    assert ["bound", "3,500.00", "3,500.00", "ok"] in rows
    assert "rejected" not in found.output
    assert found.output.splitlines()[-1].endswith("verified")


def test_json_tells_the_same(written: Folders) -> None:
    found = json.loads(verified(written, "-o", "json").output)
    assert (found["passed"], {c["passed"] for c in found["checks"]}) == (True, {True})
    assert found["figures"]["bound"] == 3500
    assert found["figures"]["gap"] == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(load_problems())
def test_any_true_plan_passes_from_files(tmp_path: Path, drawn: tuple[Problem, Any]) -> None:
    shutil.rmtree(tmp_path)
    assert verified(folders(str(tmp_path), *drawn)).exit_code == 0


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def recolumned(path: Path, name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    table = pq.read_table(path)
    values = change(table.column(name).to_pylist())
    place = table.schema.get_field_index(name)
    pq.write_table(table.set_column(place, name, pa.array(values, table.schema.field(name).type)), path)


def rows(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda w: edited(file(w, "plan"), lambda d: d["certificate"].update(bound=2400.0)), "bound: the plan says"),
        (lambda w: edited(file(w, "problem"), lambda d: d.update(clusterId="x")), "and 'x' in the problem"),
        (lambda w: edited(file(w, "problem"), lambda d: d["brokers"].pop()), "of which problem.json lists not all"),
        (lambda w: edited(file(w, "problem"), lambda d: d["brokers"][0].update(capacity=50)), "problem digest"),
        (lambda w: recolumned(file(w, "moves"), "load", lambda v: [v[0] + 1, *v[1:]]), "orders-1 has load"),
        (lambda w: recolumned(file(w, "moves"), "to_leader", lambda v: [1, *v[1:]]), "orders: orders-1"),
        (lambda w: recolumned(file(w, "moves"), "topic_id", lambda v: ["new", *v[1:]]), "is no partition of the"),
        (lambda w: rows(file(w, "moves"), lambda t: t.slice(1)), "plan digest"),
        (lambda w: recolumned(file(w, "loads"), "produce_p95", lambda v: [float("nan"), *v[1:]]), "produce_p95 of nan"),
        (lambda w: recolumned(file(w, "loads"), "consume_p95", lambda v: [-7.0, *v[1:]]), "consume_p95 of -7"),
        (lambda w: rows(file(w, "loads"), lambda t: t.slice(1)), "problem digest"),
        (lambda w: rows(file(w, "partitions"), lambda t: t.slice(1)), "problem digest"),
        (lambda w: recolumned(file(w, "partitions"), "held", lambda v: ["Displaced", *v[1:]]), "problem digest"),
        (lambda w: recolumned(file(w, "partitions"), "leader", lambda v: [2, *v[1:]]), "problem digest"),
    ],
)
def test_whatever_was_tampered_with_is_refused_and_named(
    written: Folders, tamper: Callable[[Folders], object], said: str
) -> None:
    tamper(written)
    found = verified(written)
    assert (found.exit_code, said in found.output) == (4, True), found.output
    assert found.output.splitlines()[-1].endswith("rejected")
    noted = json.loads(verified(written, "-o", "json").stdout)
    assert noted["passed"] is False
    assert any(said in f"{c['check']}: {fault}" for c in noted["checks"] for fault in c["faults"])


@pytest.mark.parametrize("name", ["plan", "moves", "problem", "partitions", "loads"])
def test_a_file_of_another_cluster_put_in_its_place_is_refused(written: Folders, tmp_path: Path, name: str) -> None:
    other = problem(*(slot(i, (3, 2, 1)) for i in range(6)), slot(0, topic="payments"), cluster_id="another")
    swapped = folders(str(tmp_path / "other"), other, {key: (r * 2, c) for key, (r, c) in KNOWN.items()})
    shutil.copy(file(swapped, name), file(written, name))
    found = verified(written)
    assert (found.exit_code, "digest: the plan says" in found.output) == (4, True), found.output


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("plan", b"", "plan.json: it is not JSON: Expecting value"),
        ("plan", b"[" * 200_000, "plan.json: it is nested too deeply"),
        ("plan", b'{"format": 3}', "plan.json: format is 3: this version reads format 2: upgrade Bellwether"),
        ("account", b'{"format": 3}', "_loads.json: format is 3: this version reads format 2: upgrade Bellwether"),
        ("account", b"[]", "_loads.json: expected a JSON object"),
        ("account", b"{", "_loads.json: Expecting"),
        ("problem", b'{"format": 3}', "problem.json: format is 3"),
        ("partitions", b"PAR1", "partitions.parquet: is damaged or not a Parquet file"),
        ("moves", b"", "part-00000.parquet: is damaged or not a Parquet file"),
        ("loads", b"hello", "part-0.parquet: is damaged or not a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_ends_with_1(
    written: Folders, name: str, content: bytes, said: str
) -> None:
    file(written, name).write_bytes(content)
    found = verified(written)
    assert (found.exit_code, said in found.output) == (1, True), found.output
    assert said in json.loads(verified(written, "-o", "json").stdout)["unreadable"]


@pytest.mark.parametrize("name", ["plan", "moves", "problem", "partitions", "loads"])
def test_a_file_that_is_missing_or_cut_off_ends_with_1(written: Folders, name: str) -> None:
    path = file(written, name)
    path.write_bytes(path.read_bytes()[:-20])
    assert verified(written).exit_code == 1
    path.unlink()
    found = verified(written)
    assert (found.exit_code, str(path.parent) in found.output) == (1, True), found.output


def test_a_column_that_is_missing_is_named(written: Folders) -> None:
    rows(file(written, "moves"), lambda t: t.drop_columns(["order"]))
    found = verified(written)
    assert (found.exit_code, "part-00000.parquet: has no column order" in found.output) == (1, True)


def test_loads_without_their_completion_mark_end_with_1(written: Folders) -> None:
    file(written, "account").unlink()
    found = verified(written)
    assert (found.exit_code, "loads/main: has no _loads.json" in found.output) == (1, True), found.output
    assert "run the loads job again" in found.output


def test_loads_in_many_files_are_the_same_loads_in_order_only(written: Folders) -> None:
    path = file(written, "loads")
    table = pq.read_table(path)
    path.unlink()
    for number in range(table.num_rows):
        pq.write_table(table.slice(number, 1), path.with_name(f"part-{number}.snappy.parquet"))
    (path.parent / "_SUCCESS").touch()
    (path.parent / "_tmp-1.parquet").write_bytes(b"half")
    assert verified(written).exit_code == 0
    path.with_name("part-0.snappy.parquet").rename(path.with_name("part-9.snappy.parquet"))
    found = verified(written)
    assert (found.exit_code, "orders-0 comes after the partition that follows it" in found.output) == (4, True)


def test_a_copied_folder_with_another_name_passes_with_a_note(written: Folders, tmp_path: Path) -> None:
    moved = tmp_path / "plans" / "mine"
    shutil.move(tmp_path / written.plan, moved)
    found = verified(replace(written, plan="plans/mine"))
    assert (found.exit_code, "note: the plan's folder has another name: mine" in found.output) == (0, True)


def test_hostile_names_bring_no_codes_to_the_terminal(tmp_path: Path) -> None:
    posed = problem(slot(0, topic="[bold]x[/]"), slot(1, topic="[bold]x[/]"))
    plan, moves = planned(posed, loads(posed, 100.0, 90.0))
    written = folders(str(tmp_path), posed, loads(posed, 100.0, 90.0), plan, moves)
    rows(file(written, "moves"), lambda t: t.slice(0, 0))
    edited(file(written, "plan"), lambda d: d.update(clusterId="\x1b[31mred\n"))
    found = verified(written)
    assert found.exit_code == 4
    assert "\x1b" not in found.output


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_a_quarter_of_a_million_partitions_take_little_memory(tmp_path: Path) -> None:
    rng = random.Random(1)
    brokers = tuple(BrokerInput(b) for b in range(1, MANY_BROKERS + 1))
    topics = [f"topic-{t:04}" for t in range(LARGE_PLAN // 50)]
    posed = problem(
        *(slot(i % 50, rng.sample(range(1, MANY_BROKERS + 1), 3), topic=topics[i // 50]) for i in range(LARGE_PLAN)),
        brokers=brokers,
    )
    known = loads(posed, *(1e4 * rng.paretovariate(1.5) for _ in range(LARGE_PLAN)))
    plan, moves = planned(posed, known, weights=dict.fromkeys(range(1, MANY_BROKERS + 1), 1))
    written = folders(str(tmp_path), posed, known, plan, moves)
    done = ran([sys.executable, "-c", PEAK_MEMORY, "verify-plan", *written.arguments()], 120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(moves):,}" in done.stdout
    peak = re.search(r"VmHWM:\s*(\d+) kB", done.stderr)
    assert peak is not None
    assert int(peak.group(1)) < 250_000
