"""What processes and an API server have used so far, read from /proc and from the server's own metrics.

In: process ids, a text in Prometheus' format. Out: figures, and what lies between two readings. Called by the bench.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_REQUEST = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one time."""

    at: float
    cpu_seconds: float
    resident_bytes: int
    peak_bytes: int
    threads: int


def usage(pid: int) -> Usage:
    """What a process has used until now."""
    # The name may hold blanks and parentheses; what follows its last one is regular.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return Usage(
        at=time.monotonic(),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
        resident_bytes=_kilobytes(status["VmRSS"]),
        peak_bytes=_kilobytes(status["VmHWM"]),
        threads=int(status["Threads"]),
    )


def between(before: Usage, after: Usage) -> dict[str, float]:
    """A process' appetite between two readings."""
    return {
        "cpu_cores": round((after.cpu_seconds - before.cpu_seconds) / (after.at - before.at), 3),
        "resident_megabytes": round(after.resident_bytes / 1e6, 1),
        "peak_megabytes": round(after.peak_bytes / 1e6, 1),
        "threads": after.threads,
    }


def requests(metrics: str) -> Counter[tuple[str, str]]:
    """Requests that the API server has answered, by verb and resource (with its subresource, where it has one)."""
    found: Counter[tuple[str, str]] = Counter()
    for line in metrics.splitlines():
        matched = _REQUEST.match(line)
        if matched is not None:
            labels = dict(_LABEL.findall(matched[1]))
            of = "/".join(part for part in (labels.get("resource", ""), labels.get("subresource", "")) if part)
            found[labels.get("verb", ""), of] += int(float(matched[2]))
    return found


def rates(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int], seconds: float, verbs: Iterable[str]
) -> dict[str, float]:
    """Requests a second between two readings, by ``VERB resource``; what did not happen is left out."""
    wanted = frozenset(verbs)
    return {
        f"{verb} {resource}": round((count - before.get((verb, resource), 0)) / seconds, 3)
        for (verb, resource), count in sorted(after.items())
        if verb in wanted and count != before.get((verb, resource), 0)
    }


def sample(metrics: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that carry these labels."""
    total = 0.0
    for line in metrics.splitlines():
        matched = re.match(rf"^{re.escape(name)}(?:\{{(.*)\}})? (\S+)$", line)
        if matched is not None and labels.items() <= dict(_LABEL.findall(matched[1] or "")).items():
            total += float(matched[2])
    return total


def _kilobytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024
