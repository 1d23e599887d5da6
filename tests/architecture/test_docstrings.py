"""Every module says what comes in, what goes out and who calls it, so that a reader need not guess."""

from __future__ import annotations

import ast
from pathlib import Path

from sourcetree import ROOT, sources


def silent_modules(root: Path) -> list[str]:
    """Public modules without a docstring."""
    return [
        p.relative_to(root).as_posix()
        for p in sources(root)
        if not (p.name.startswith("_") and not p.name.startswith("__"))
        and not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))
    ]


def test_every_public_module_has_a_docstring() -> None:
    assert silent_modules(ROOT) == []
