"""Shipped code uses libraries by their public names only: a private one may change with any release."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sourcetree import ROOT, sources

OURS = ("bellwether", "bellwether_load", "chartvalues", "dashboards")


def private_imports(root: Path) -> list[str]:
    """Imports of another package's module or name that begins with an underscore, as ``file:line name``."""
    found = []
    for path in sources(root):
        place = path.relative_to(root).as_posix()
        if place.startswith(("operator/", "spark/", "helm/")):
            for line, name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
                parts = name.split(".")
                if parts[0] not in (*OURS, "__future__") and any(part.startswith("_") for part in parts):
                    found.append(f"{place}:{line} {name}")
    return found


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_no_private_module_of_a_library_is_imported() -> None:
    assert private_imports(ROOT) == []
