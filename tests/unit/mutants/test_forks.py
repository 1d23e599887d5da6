"""Replacing the code of functions that are already imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mutants.forks import replace_code
from mutants.mutations import count, mutation

SOURCE = """
from functools import cache, cached_property

def plain(a):
    return [b > 0 for b in a]

@cache
def cached():
    return 1

class Kept:
    @property
    def one(self):
        return 1

    @cached_property
    def two(self):
        return 1

    @staticmethod
    def three():
        return 1

    @classmethod
    def four(cls):
        return 1
"""


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "sample_of_functions.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]


def test_every_kind_of_function_does_what_its_mutant_does(sample: ModuleType):
    plain, kept = sample.plain, sample.Kept()
    for number in range(count(SOURCE)):
        made = mutation(SOURCE, number)
        assert made.function is not None
        replace_code(sample, made.tree, made.function.start)
    assert plain([0, 1]) in ([True, True], [False, False])
    assert (sample.cached(), kept.one, kept.two, kept.three(), kept.four()) == (2, 2, 2, 2, 2)


def test_a_line_on_which_no_function_begins_is_refused(sample: ModuleType):
    with pytest.raises(LookupError, match=":2"):
        replace_code(sample, mutation(SOURCE, 0).tree, 2)


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("a = 1", None),
        ("def f(a=1): ...", None),
        ("@d\ndef f():\n    return 1", range(1, 4)),
        ("class A:\n    b = 1", None),
        ("class A:\n    def f(self):\n        def g():\n            return 1", range(2, 5)),
    ],
)
def test_a_mutation_names_the_outermost_function_around_it(source: str, function: range | None):
    assert mutation(source, 0).function == function
