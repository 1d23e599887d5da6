"""Writes ``reports/faults.json``. In: results. Out: a file that holds a row for each scenario that was ever run.

A run of a few scenarios replaces their rows and leaves the others, which say when they were run and on which commit.
Called by ``__main__`` after each scenario, so that an interrupted run leaves what it found.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.playing import Result
from faults.settings import ROOT


def commit() -> str:
    """The commit that is checked out, with a plus sign when files were changed since; empty outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def row(result: Result, commit_: str) -> dict[str, Any]:
    """One result with when it was found."""
    return {**result.row(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": commit_}


def merged(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The report: the rows of ``names`` in their order, those that were run now in place of earlier ones."""
    rows = {one["scenario"]: one for one in (*before, *now)}
    kept = [rows[name] for name in names if name in rows]
    return {
        "scenarios": len(kept),
        "of": len(names),
        "right": sum(one["ok"] for one in kept),
        "healthy_brokers_demoted": sum(one["healthy_brokers_demoted"] for one in kept),
        "cores": os.cpu_count(),
        "results": kept,
    }


def save(path: Path, now: Sequence[dict[str, Any]], names: Sequence[str], *, fresh: bool) -> dict[str, Any]:
    """Write the report, and return it. ``fresh`` begins it anew."""
    before: list[dict[str, Any]] = []
    if not fresh and path.exists():
        before = json.loads(path.read_text())["results"]
    report = merged(before, now, names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    return report
