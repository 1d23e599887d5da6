"""Which modules are mutated, and in which order a mutant meets the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.runs import DECIDING, Found, modules, stages


@pytest.mark.parametrize("path", DECIDING)
def test_each_deciding_path_holds_a_module(path: str):
    assert modules([path])


def test_a_path_without_a_module_is_refused():
    with pytest.raises(ValueError, match="core/nothing"):
        modules(["core/nothing"])


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_mutant_meets_each_test_once_and_the_cheapest_first(module: Path):
    met = [(found, test) for found, tests in stages(module) for test in tests if not test.startswith("--")]
    assert len({test for _, test in met}) == len(met)
    assert all(Path(test).exists() for _, test in met)
    order = list(Found)
    assert [found for found, _ in met] == sorted((found for found, _ in met), key=order.index)


def test_the_own_tests_of_a_module_mirror_its_name():
    own = dict(stages(Path("core/planning/plan.py")))[Found.OWN_TESTS]
    assert [Path(test).name for test in own] == ["test_plan.py"]
