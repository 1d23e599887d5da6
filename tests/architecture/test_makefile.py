"""``make`` explains itself: every target is in its help, and every target that a document names exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from sourcetree import ROOT, texts

PHONY = re.compile(r"^\.PHONY: (.+)$", re.MULTILINE)
SPOKEN = re.compile(r"`make ([a-z][a-z-]*)|^(?:\$ )?make ([a-z][a-z-]*)", re.MULTILINE)


def targets(root: Path) -> set[str]:
    """What the Makefile offers to people: its phony targets."""
    return {name for line in PHONY.findall((root / "Makefile").read_text()) for name in line.split()}


def helped(root: Path, *arguments: str) -> set[str]:
    """The targets that ``make`` lists; without arguments, those of the default target."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", *arguments], cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return set(re.findall(r"^  make ([a-z-]+) ", done.stdout, re.MULTILINE))


def unknown_targets(root: Path) -> list[str]:
    """Targets that a document names and the Makefile does not have, as ``file: target``."""
    known = targets(root)
    return sorted(
        f"{path.relative_to(root).as_posix()}: {name}"
        for path, text in texts(root).items()
        if path.suffix == ".md"
        for name in {a or b for a, b in SPOKEN.findall(text)}
        if name not in known
    )


def test_help_lists_every_target() -> None:
    assert helped(ROOT, "help") == targets(ROOT)


def test_make_alone_prints_the_help() -> None:
    assert helped(ROOT) == helped(ROOT, "help")


def test_every_target_that_a_document_names_exists() -> None:
    assert unknown_targets(ROOT) == []


def test_target_without_help_and_document_that_is_wrong_are_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    with (tmp_path / "Makefile").open("a") as makefile:
        makefile.write(".PHONY: secret\nsecret:\n\t@true\n")
    (tmp_path / "README.md").write_text("Run `make demo KEEP=1`, then\n```\nmake tset\n```\n")
    assert targets(tmp_path) - helped(tmp_path, "help") == {"secret"}
    assert unknown_targets(tmp_path) == ["README.md: tset"]
