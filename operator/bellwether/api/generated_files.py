"""Generated files: write them, or compare them with what is committed, for every ``generate`` module. What every
``generate`` module is run by.

In: a function that makes the files, by their path below the root of the repository. Out: files, a unified diff, an exit
status. Called by ``make generate``, ``make verify`` and the tests of freshness.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Generated:
    """What one ``python -m <module>`` generates."""

    module: str
    description: str | None
    files: Callable[[], Mapping[Path, str]]

    def differences(self, root: Path) -> str:
        """How the files below ``root`` differ from the generated ones, as a unified diff; empty when they are fresh."""
        lines: list[str] = []
        for path, wanted in self.files().items():
            found = (root / path).read_text(encoding="utf-8") if (root / path).exists() else ""
            lines += difflib.unified_diff(
                found.splitlines(keepends=True), wanted.splitlines(keepends=True), f"found/{path}", f"wanted/{path}"
            )
        return "".join(lines)

    def write(self, root: Path) -> None:
        """Write every file below ``root``."""
        for path, text in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

    def main(self, arguments: list[str] | None = None) -> int:
        """The exit status: 1 when ``--check`` finds a difference."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.description)
        parser.add_argument("--check", action="store_true", help="write nothing; print what differs and exit 1")
        parser.add_argument(
            "--root", type=Path, default=Path(), help="the repository's root (default: current directory)"
        )
        options = parser.parse_args(arguments)
        if not (options.root / "pyproject.toml").exists():
            parser.error(
                f"{options.root.resolve()} has no pyproject.toml: run it at the repository's root, or give --root"
            )
        if options.check:
            difference = self.differences(options.root)
            sys.stdout.write(difference)
            if difference:
                sys.stderr.write("error: generated files are stale; run: make generate\n")
            return 1 if difference else 0
        self.write(options.root)
        return 0
