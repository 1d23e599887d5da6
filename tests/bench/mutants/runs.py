"""Run the tests against a mutated copy of the operator, the cheapest tests first."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "operator" / "bellwether"
DECIDING = (
    "core/demotion",
    "core/detection",
    "core/doctor/risks.py",
    "core/execution",
    "core/planning",
    "core/quarantine",
    "core/rebalance",
    "execute.py",
)
"""The modules that decide which leaders move, and the one that carries it out; in the package."""

LIMIT_SECONDS = 240
"""CPU time of one test process. A mutant that takes longer, as one that loops for ever, counts as found."""


class Found(StrEnum):
    """Which tests noticed a mutant, the cheapest first."""

    OWN_TESTS = "own unit tests"
    UNIT_TESTS = "other unit tests"
    SCENARIOS = "scenarios"
    PROPERTIES = "properties"
    NOTHING = "survived"


def modules(within: Sequence[str] = DECIDING) -> list[Path]:
    """The modules that are mutated, relative to the package. Raises ValueError for a path without a module."""
    found = set[Path]()
    for path in within:
        place = SOURCE / path
        inside = [place] if place.is_file() else [p for p in place.rglob("*.py") if p.name != "__init__.py"]
        if not inside:
            raise ValueError(f"no module in {place}")
        found.update(p.relative_to(SOURCE) for p in inside)
    return sorted(found)


def stages(module: Path) -> Iterator[tuple[Found, list[str]]]:
    """The tests that a mutant of a module meets, one stage after the other."""
    unit = ROOT / "tests" / "unit"
    own = sorted((unit / module.parent).glob(f"test_{module.stem}*.py"))
    reconcile = sorted(p for p in unit.glob("test_*.py") if p not in own)
    stage = unit / module.parent if module.parent != Path() else unit / "core"
    yield Found.OWN_TESTS, [str(p) for p in own]
    yield Found.UNIT_TESTS, [str(p) for p in sorted(stage.rglob("test_*.py")) if p not in own]
    yield Found.UNIT_TESTS, [str(p) for p in reconcile]
    yield Found.UNIT_TESTS, [str(p) for p in sorted((unit / "core").rglob("test_*.py")) if stage not in p.parents]
    yield Found.SCENARIOS, [str(ROOT / "tests" / "scenarios" / "test_scenarios.py")]
    yield Found.PROPERTIES, [str(ROOT / "tests" / "properties"), "--hypothesis-profile=few"]


class MutatedCopy:
    """A copy of the package in a folder of its own, in which one module at a time is mutated."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "bellwether"
        shutil.copytree(SOURCE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self.package, quiet=1)
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
        }

    def passes(self, tests: Sequence[str]) -> bool:
        """Whether these tests pass with the copy as it is now."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests]
        limited = ["bash", "-c", f'ulimit -t {LIMIT_SECONDS}; exec "$@"', "--", *command]
        done = subprocess.run(limited, cwd=ROOT, env=self._environment, capture_output=True, check=False)
        return done.returncode == 0

    def judge(self, module: Path, text: str, *, unit_only: bool = False) -> Found:
        """Which tests notice the module with this text; the module is put back afterwards."""
        place = self.package / module
        original = place.read_text()
        place.write_text(text)
        try:
            for found, tests in stages(module):
                if unit_only and found not in (Found.OWN_TESTS, Found.UNIT_TESTS):
                    break
                if tests and not self.passes(tests):
                    return found
            return Found.NOTHING
        finally:
            place.write_text(original)
            # Python compares times in whole seconds, and might take the mutant's bytecode for the next one's.
            for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
                compiled.unlink()
