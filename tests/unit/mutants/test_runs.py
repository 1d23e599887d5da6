"""Which modules are mutated, and where a test stands for a mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.runs import DECIDING, ROOT, Found, modules, paths_of_tests, stage


@pytest.mark.parametrize("path", DECIDING)
def test_each_deciding_path_holds_a_module(path: str):
    assert modules([path])


def test_a_path_without_a_module_is_refused():
    with pytest.raises(ValueError, match="core/nothing"):
        modules(["core/nothing"])


def test_the_tests_that_a_mutant_meets_exist():
    assert all((ROOT / path).exists() for path in paths_of_tests(properties=True))


@pytest.mark.parametrize(
    ("test", "module", "found"),
    [
        ("tests/unit/core/planning/test_plan.py::test_x", "core/planning/plan.py", Found.OWN_TESTS),
        ("tests/unit/test_execute_aborts.py::test_x", "execute.py", Found.OWN_TESTS),
        ("tests/unit/core/planning/test_plan.py::test_x", "core/planning/guards.py", Found.UNIT_TESTS),
        ("tests/unit/core/planning/test_plan.py::test_x", "core/demotion/plan.py", Found.UNIT_TESTS),
        ("tests/scenarios/test_scenarios.py::test_x", "execute.py", Found.SCENARIOS),
        ("tests/properties/test_kills.py::test_x", "execute.py", Found.PROPERTIES),
    ],
)
def test_the_tests_that_mirror_a_module_are_its_own(test: str, module: str, found: Found):
    assert stage(test, Path(module)) is found
