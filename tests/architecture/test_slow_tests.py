"""Each file of slow tests names its sources, and shards take each file once."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

from sourcetree import ROOT, files
from testkit.processes.slow_test_selection import SOURCES, chosen_files, shard_files, touched, tree_pattern

TESTS = ROOT / "tests"
SLOW = re.compile(r"\bmark\.slow\b")


def slow_files() -> set[str]:
    """Files below ``tests/`` that hold a slow test."""
    return {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__) and SLOW.search(path.read_text())
    }


def test_every_file_of_slow_tests_names_its_sources() -> None:
    assert set(SOURCES) == slow_files()


def test_every_pattern_matches_a_file() -> None:
    tree = [path.relative_to(ROOT).as_posix() for path in files(ROOT)]
    patterns = {tree_pattern(pattern) for patterns in SOURCES.values() for pattern in patterns}
    assert [p for p in sorted(patterns) if not fnmatch.filter(tree, p)] == []


def test_the_shards_take_each_file_once() -> None:
    shards = [shard_files(SOURCES, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(SOURCES)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="--changed-since=nosuch"):
        chosen_files(SOURCES, None, "nosuch")


def test_a_changed_source_and_a_changed_test_choose_its_file() -> None:
    assert touched("integration/operator/test_quarantine.py", {"operator/bellwether/core/quarantine/hold_decision.py"})
    assert touched("integration/operator/test_quarantine.py", {"tests/integration/operator/test_quarantine.py"})
    assert not touched(
        "integration/operator/test_quarantine.py", {"operator/bellwether/core/model/rack_ranking.py", "README.md"}
    )
