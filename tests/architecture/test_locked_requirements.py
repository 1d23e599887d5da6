"""``requirements/dev.lock`` holds every requirement of ``pyproject.toml``, with hashes and with nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sourcetree import ROOT

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def pins(lock: str) -> dict[str, list[str]]:
    """Canonical name -> pinned versions; several where they differ by platform or Python."""
    found: dict[str, list[str]] = {}
    for line in lock.splitlines():
        if match := PIN.match(line):
            found.setdefault(canonicalize_name(match["name"]), []).append(match["version"])
    return found


def missing(root: Path) -> list[str]:
    """Requirements of ``pyproject.toml``, groups included, that no pin of the lock satisfies."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [text for group in project["dependency-groups"].values() for text in group]
    pinned = pins((root / "requirements" / "dev.lock").read_text())
    return sorted(
        {
            text
            for text in wanted
            if not any(
                r.specifier.contains(v) for r in [Requirement(text)] for v in pinned.get(canonicalize_name(r.name), [])
            )
        }
    )


def strange_lines(lock: str) -> list[str]:
    """Lines that are neither a pin nor a hash: options, URLs, comments, unpinned names."""
    return [line for line in lock.splitlines() if not PIN.match(line) and not HASH.match(line)]


def test_every_requirement_is_locked() -> None:
    assert missing(ROOT) == [], "run: make lock"


def test_the_lock_holds_pins_and_hashes_alone() -> None:
    assert strange_lines((ROOT / "requirements" / "dev.lock").read_text()) == []


def test_a_requirement_that_is_not_locked_or_too_old_is_found(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.lock").write_text(
        f"Click==8.0.0 \\\n    --hash=sha256:{'0' * 64}\nhatchling==1.30 \\\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling>=1.27"]\n'
        '[project]\ndependencies = ["click>=8.2", "kopf"]\n[dependency-groups]\nlint = ["ruff"]\n'
    )
    assert missing(tmp_path) == ["click>=8.2", "kopf", "ruff"]


@pytest.mark.parametrize(
    "line", ["-r other.txt", "requests", "requests==2.0", "# by a tool", "x @ https://example.com/x.whl"]
)
def test_a_line_that_is_neither_pin_nor_hash_is_found(line: str) -> None:
    assert strange_lines(f"click==8.2 \\\n    --hash=sha256:{'0' * 64}\n{line}\n") == [line]
