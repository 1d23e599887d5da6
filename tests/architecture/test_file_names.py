"""A file's name says its one job: no drawer for odds and ends, and no name of the standard library's.

A file named like a standard module breaks Python as soon as its folder is on the path, as a script's folder is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sourcetree import ROOT, SOURCES, sources

DRAWERS = frozenset(
    {
        "common",
        "func",
        "funcs",
        "helper",
        "helpers",
        "lib",
        "manager",
        "managers",
        "misc",
        "shared",
        "stuff",
        "util",
        "utils",
    }
)


def drawers(root: Path) -> list[str]:
    """Python files and packages whose name says nothing of what they hold."""
    return _named(root, DRAWERS)


def standard_names(root: Path) -> list[str]:
    """Python files and packages named like a module of the standard library."""
    return _named(root, sys.stdlib_module_names)


def _named(root: Path, names: frozenset[str]) -> list[str]:
    found = set()
    for path in sources(root):
        relative = path.relative_to(root)
        below = len(next(Path(s).parts for s in SOURCES if relative.is_relative_to(s)))
        # Folders count as packages, but for the plain top-level ones, which another test keeps plain.
        if names.intersection({path.stem, *relative.parts[below:-1]}):
            found.add(relative.as_posix())
    return sorted(found)


def test_no_file_is_a_drawer_for_odds_and_ends() -> None:
    assert drawers(ROOT) == []


def test_no_module_is_named_like_the_standard_library() -> None:
    assert standard_names(ROOT) == []


def test_the_plain_folder_operator_is_not_taken_for_a_module(tmp_path: Path) -> None:
    assert standard_names(with_file(tmp_path, "operator/bellwether/reconcile.py")) == []


def with_file(root: Path, name: str) -> Path:
    (root / name).parent.mkdir(parents=True)
    (root / name).touch()
    return root
