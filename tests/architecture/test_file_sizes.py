"""One job per file shows in its size: look twice at 300 lines, split by 450, and stay near 150 as a rule."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from sourcetree import ROOT, files, sources

LIMIT = 450
MEDIAN_LIMIT = 200


def oversized(root: Path) -> dict[str, int]:
    """Source and test files with more lines than the limit."""
    counted = {p: _lines(p) for p in files(root) if p.suffix in {".py", ".sh", ".c"} or p.name == "Makefile"}
    return {p.relative_to(root).as_posix(): n for p, n in counted.items() if n > LIMIT}


def median_lines(root: Path) -> float:
    """The median length of the source files that say anything, package markers left out."""
    return statistics.median(_lines(p) for p in sources(root) if p.name != "__init__.py")


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_its_limit() -> None:
    assert oversized(ROOT) == {}


def test_the_median_source_file_can_be_read_in_one_sitting(
    record_property: Callable[[str, object], None],
) -> None:
    median = median_lines(ROOT)
    record_property("median_lines", median)
    assert median <= MEDIAN_LIMIT


def test_a_file_over_the_limit_is_found(tmp_path: Path) -> None:
    (tmp_path / "operator").mkdir()
    (tmp_path / "operator" / "long.py").write_text("x = 1\n" * (LIMIT + 1))
    (tmp_path / "operator" / "short.py").write_text("x = 1\n" * LIMIT)
    assert oversized(tmp_path) == {"operator/long.py": LIMIT + 1}
    assert median_lines(tmp_path) == LIMIT + 0.5
