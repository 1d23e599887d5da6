"""How much memory the node's processes hold, pods included. In: the namespaces. Out: bytes by program's name.

Pages shared among processes are counted once, in parts (the kernel's proportional set size). Called by ``__main__``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from node.namespaces import Namespaces

PROCESSES = Path("/proc")


def held(namespaces: Namespaces) -> Mapping[str, int]:
    """Bytes held by all processes below the one that holds the node, summed by the name of their program."""
    parents = {process: parent for process in _processes() if (parent := _parent(process)) is not None}
    total: Counter[str] = Counter()
    for process in parents:
        if _descends(process, namespaces.pid, parents):
            total[_read(process, "comm").strip()] += _proportional(process)
    return total


def _descends(process: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    seen = process
    while seen in parents and seen != ancestor:
        seen = parents[seen]
    return seen == ancestor


def _processes() -> list[int]:
    return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdecimal()]


def _parent(process: int) -> int | None:
    fields = _read(process, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else None


def _proportional(process: int) -> int:
    for line in _read(process, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(process: int, name: str) -> str:
    try:
        return (PROCESSES / str(process) / name).read_text()
    except OSError:  # it ended meanwhile
        return ""
