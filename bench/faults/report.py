"""Writes ``reports/faults.json``. In: results. Out: a file that holds a row for each scenario that was ever run.

Repeated, or on another number of partitions, a run is about times: those go to ``reports/fault-times.json``.

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
from statistics import median
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


def row(result: Result, commit_: str, partitions: int) -> dict[str, Any]:
    """One result with when it was found, and how busy the machine was then: the load average of the last minute."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    load = round(os.getloadavg()[0], 1)
    return {**result.row(), "partitions": partitions, "load": load, "at": at, "commit": commit_}


def times(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds from each fault to its verdict and to zero leaders: a row for each scenario, over all that were played.

    What was never reached has no number, and makes the worst one None. The first time of all, nothing has been learned
    of the cluster; ``later`` is the median of the others.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for one in rows:
        found.setdefault(one["scenario"], []).append(one)
    return [
        {
            "scenario": name,
            "what": played[0]["what"],
            "partitions": played[0]["partitions"],
            "runs": len(played),
            "right": sum(one["ok"] for one in played),
            "to_verdict": _spread([one["seconds_to_verdict"] for one in played]),
            "to_zero_leaders": _spread([one["seconds_to_zero_leaders"] for one in played]),
            "load": max(one["load"] for one in played),
            "commit": played[-1]["commit"],
        }
        for name, played in found.items()
    ]


def _spread(seconds: Sequence[float | None]) -> dict[str, Any]:
    known = [one for one in seconds if one is not None]
    worst = max(known) if known and len(known) == len(seconds) else None
    others = [one for one in seconds[1:] if one is not None]
    later = round(median(others), 2) if others else None
    return {"first": seconds[0], "later": later, "worst": worst, "all": list(seconds)}


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
    """Write the report, and return it. ``fresh`` begins it again."""
    before: list[dict[str, Any]] = []
    if not fresh and path.exists():
        before = json.loads(path.read_text())["results"]
    report = merged(before, now, names)
    write(path, report)
    return report


def write(path: Path, found: object) -> None:
    """Write figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")
