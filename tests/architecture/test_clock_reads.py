"""Only the clock adapter reads the wall clock; everyone else is given ``now``, so that a turn can be replayed."""

from __future__ import annotations

import ast
from pathlib import Path

from sourcetree import ROOT, sources

CLOCKS = "operator/bellwether/adapters/clocks.py"
READS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
}


def clock_reads(root: Path) -> list[str]:
    """Where shipped code reads the wall clock outside the clock adapter, as ``file:line``."""
    found = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        if not name.startswith(("operator/", "spark/")) or name == CLOCKS:
            continue
        found += [
            f"{name}:{node.lineno}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and (_last_word(node.value), node.attr) in READS
        ]
    return found


def _last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_only_the_clock_adapter_reads_the_wall_clock() -> None:
    assert clock_reads(ROOT) == []
