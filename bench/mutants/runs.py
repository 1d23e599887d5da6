"""Which modules are mutated, and the tests that a mutant meets, the cheapest first.

A change within a function is tested in ``forks``. What is evaluated when a module is imported, as a constant, needs a
process that has not imported it yet: ``MutatedCopy``.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "operator" / "bellwether"
DECIDING = (
    "core/demotion",
    "core/detection",
    "core/doctor/risks.py",
    "core/execution",
    "core/planning",
    "core/quarantine",
    "core/waves",
    "execute.py",
)
"""The modules that decide which leaders move, and the one that carries it out; in the package."""

LIMIT_SECONDS = 240
"""CPU time of one mutant. One that takes longer, as one that loops for ever, is found."""


class Found(StrEnum):
    """Which tests noticed a mutant, the cheapest first."""

    OWN_TESTS = "own unit tests"
    UNIT_TESTS = "other unit tests"
    SCENARIOS = "scenarios"
    PROPERTIES = "properties"
    TIME = "time limit"
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


def paths_of_tests(*, properties: bool) -> list[str]:
    """The tests of the core and of a reconcile, relative to the repository."""
    reconcile = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/unit").glob("test_*.py"))
    found = ["tests/unit/core", *reconcile, "tests/scenarios/test_scenarios.py"]
    return [*found, "tests/properties"] if properties else found


def stage(test: str, module: Path) -> Found:
    """What the test of that id is for a mutant of that module."""
    file = test.partition("::")[0]
    if file.startswith("tests/properties/"):
        return Found.PROPERTIES
    if file.startswith("tests/scenarios/"):
        return Found.SCENARIOS
    own = re.fullmatch(rf"tests/unit/{module.with_suffix('').parent.joinpath('test_' + module.stem)}(_\w+)?\.py", file)
    return Found.OWN_TESTS if own else Found.UNIT_TESTS


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

    def judge(self, module: Path, text: str, chosen: Sequence[str]) -> Found:
        """Which of the tests notices the module with this text; the module is put back afterwards."""
        place = self.package / module
        original = place.read_text()
        place.write_text(text)
        own = [t for t in _files(chosen) if stage(t, module) is Found.OWN_TESTS]
        try:
            for some in (own, chosen):
                if some and (test := self._failing(some)) is not None:
                    return stage(test, module)
            return Found.NOTHING
        finally:
            place.write_text(original)
            # Python compares times in whole seconds, and might take the mutant's bytecode for the next one's.
            for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
                compiled.unlink()

    def _failing(self, chosen: Sequence[str]) -> str | None:
        """The first test that fails with the copy as it is now."""
        options = ("-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--hypothesis-profile=few")
        command = [sys.executable, "-m", "pytest", *options, *chosen]
        limited = ["bash", "-c", f'ulimit -t {LIMIT_SECONDS}; exec "$@"', "--", *command]
        done = subprocess.run(
            limited, cwd=ROOT, env=self._environment, capture_output=True, encoding="utf-8", check=False
        )
        named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return (named[1] if named else chosen[0]) if done.returncode else None


def _files(chosen: Sequence[str]) -> list[str]:
    """The test files in these folders."""
    found = [p for path in chosen for p in (sorted((ROOT / path).rglob("test_*.py")) or [ROOT / path])]
    return [str(p.relative_to(ROOT)) for p in found]
