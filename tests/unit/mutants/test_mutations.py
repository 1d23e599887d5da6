"""Mutations of a module: each changes one thing, and leaves the rest as it was."""

from __future__ import annotations

import ast

import pytest

from mutants.mutations import count, mutation


@pytest.mark.parametrize(
    ("source", "mutated"),
    [
        ("a < b", ["a <= b"]),
        ("a in b", ["a not in b"]),
        ("a and b", ["a or b"]),
        ("a if b else c", ["c if b else a"]),
        ("a = 1", ["a = 2"]),
        ("a = True", ["a = False"]),
        ("not a", ["not not a"]),
        ("a - b", ["a + b"]),
        ("save(a)", ["None"]),
        ("a = save(a)", []),
        ("a: Literal[1] = b", []),
        ("def f(a: int | None) -> set[int] | None: ...", []),
        ("f'{a:>3} {1}'", []),
        ("@dataclass(frozen=True)\nclass A: ...", []),
        ("a < 1\nb(c)", ["a <= 1\nb(c)", "a < 2\nb(c)", "a < 1\nNone"]),
    ],
)
def test_each_mutation_changes_one_thing(source: str, mutated: list[str]):
    found = [mutation(source, number).text for number in range(count(source))]
    assert sorted(found) == sorted(mutated)


def test_a_mutation_names_its_line_and_what_stood_there():
    found = mutation("a = b\nif a > b:\n    save(a)\n", 0)
    assert (found.line, found.before, found.after) == (2, "a > b", "a >= b")


def test_the_module_stays_valid_with_each_of_them():
    source = "def f(a: int) -> int:\n    # why\n    return a + 1 if not a else -2\n"
    for number in range(count(source)):
        ast.parse(mutation(source, number).text)


def test_there_is_no_number_beyond_the_last():
    with pytest.raises(IndexError):
        mutation("a < b", 1)
