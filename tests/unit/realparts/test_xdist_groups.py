"""Which tests run in one process, and in what order lots begin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testkit.processes.xdist_groups import (
    FOUR_BROKERS,
    LOTS,
    THREE_BROKERS,
    THREE_MORE,
    THREE_PROBED,
    begins,
    begins_in_shard,
    lot_of,
)

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("test", "lot"),
    [
        ("tests/integration/operator/test_rest.py::test_x", THREE_BROKERS),
        ("tests/contract/test_four_brokers.py::test_x[a/b::c]", FOUR_BROKERS),
        ("tests/integration/apiserver/test_leases.py::TestX::test_y", "integration/apiserver"),
        ("tests/unit/probes/test_storage.py::test_x", "unit/probes/test_storage.py"),
    ],
)
def test_a_test_is_of_its_folders_lot_or_alone(test: str, lot: str) -> None:
    assert lot_of(test) == lot


def test_the_longest_lot_begins_first_and_what_needs_no_real_part_last() -> None:
    shared = ("integration/operator", "contract", "integration/probes", "spark", "integration/rights")
    folders = (*shared, "integration/apiserver", "unit/core")
    assert [begins(f"tests/{folder}/test_a.py::test_x") for folder in folders] == [0, 1, 2, 3, 4, 5, 6]


def test_no_real_part_is_needed_after_a_test_without_any_in_a_shard() -> None:
    real, unit = "tests/integration/probes/test_a.py::test_x", "tests/unit/core/test_a.py::test_x"
    tests = [(unit, False), (real, False), (unit, True), (real, True)]
    ordered = sorted(tests, key=lambda test: begins_in_shard(*test))
    assert ordered == [(real, True), (real, False), (unit, True), (unit, False)]


def test_every_folder_that_has_a_lot_exists() -> None:
    assert [folder for folder in LOTS if not (TESTS / folder).is_dir()] == []


@pytest.mark.parametrize(
    ("fixture", "lots"), [("kafka", {THREE_BROKERS, THREE_MORE, THREE_PROBED}), ("four", {FOUR_BROKERS})]
)
def test_a_cluster_is_asked_for_in_its_own_lots_alone(fixture: str, lots: set[str]) -> None:
    asks = re.compile(rf"(?<!self, )\b{fixture}: KafkaCluster")
    files = [p for p in TESTS.rglob("*.py") if p.parent.name not in ("tests", "realparts") and "testkit" not in p.parts]
    users = {path.relative_to(TESTS).as_posix() for path in files if asks.search(path.read_text())}
    assert {lot_of(f"tests/{file}") for file in users if not file.startswith("e2e")} == lots
