"""Write generated files, or compare them with the committed ones, for every ``generate`` module.

In: a function that returns the files by their path below the repository root. Out: files, a unified diff, an exit
status. Called by ``make generate``, ``make verify`` and the freshness tests.
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
    """The files that one ``python -m <module>`` generates."""

    module: str
    description: str | None
    files: Callable[[], Mapping[Path, str]]

    def differences(self, root: Path) -> str:
        """Unified diff between the files below ``root`` and the generated ones; empty if they are up to date."""
        lines: list[str] = []
        for path, expected in self.files().items():
            found = (root / path).read_text(encoding="utf-8") if (root / path).exists() else ""
            lines += difflib.unified_diff(
                found.splitlines(keepends=True), expected.splitlines(keepends=True), f"found/{path}", f"expected/{path}"
            )
        return "".join(lines)

    def write(self, root: Path) -> None:
        """Write all files below ``root``."""
        for path, text in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

    def main(self, arguments: list[str] | None = None) -> int:
        """Run the command line. Returns the exit status: 1 if ``--check`` finds a difference."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.description)
        parser.add_argument(
            "--check", action="store_true", help="write nothing; print a diff and exit 1 if there is one"
        )
        parser.add_argument(
            "--root", type=Path, default=Path(), help="root of the repository (default: the current directory)"
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
