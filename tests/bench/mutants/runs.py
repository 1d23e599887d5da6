"""Run the tests against a mutated copy of the operator: the module's own unit tests first, then the wider selection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "operator" / "bellwether"
WIDER = ("tests/unit/core", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/unit").glob("test_*.py")))
PROPERTIES = ("tests/properties", "--hypothesis-profile=few")
LIMIT_SECONDS = 300
"""A mutant that keeps the tests running for longer, as one that loops for ever, counts as found."""


class Found(StrEnum):
    """Which tests noticed a mutant."""

    OWN_TESTS = "own unit tests"
    UNIT_TESTS = "other unit tests"
    PROPERTIES = "properties"
    NOTHING = "survived"


def modules() -> list[Path]:
    """The modules that are mutated, relative to the package."""
    found = [p for p in (SOURCE / "core").rglob("*.py") if p.name not in ("__init__.py", "reasons.py")]
    return sorted(p.relative_to(SOURCE) for p in [*found, SOURCE / "execute.py"])


def own_tests(module: Path) -> list[str]:
    """The test files that mirror a module."""
    folder = ROOT / "tests" / "unit" / module.parent
    return sorted(str(p.relative_to(ROOT)) for p in folder.glob(f"test_{module.stem}*.py"))


class MutatedCopy:
    """A copy of the package in a folder of its own, in which one module at a time is mutated."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "bellwether"
        shutil.copytree(SOURCE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def passes(self, tests: Sequence[str]) -> bool:
        """Whether these tests pass with the copy as it is now."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self._environment, capture_output=True, timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def judge(self, module: Path, text: str, *, properties: bool = True) -> Found:
        """Which tests notice the module with this text; the module is put back afterwards.

        Without ``properties`` only unit tests are run.
        """
        place = self.package / module
        original = place.read_text()
        place.write_text(text)
        try:
            stages = [(own_tests(module), Found.OWN_TESTS), (WIDER, Found.UNIT_TESTS)]
            if properties:
                stages.append((PROPERTIES, Found.PROPERTIES))
            for tests, found in stages:
                if tests and not self.passes(tests):
                    return found
            return Found.NOTHING
        finally:
            place.write_text(original)
