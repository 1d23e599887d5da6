"""Log directories as Kafka's StorageTool leaves them: a ``meta.properties`` in each, which names broker and cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCKS = """
import sys, time
locks = [open(f"{directory}/.lock", "a") for directory in sys.argv[1:]]
print("ready", flush=True)
time.sleep(3600)
"""


def broker_process(*directories: Path) -> list[str]:
    """Command of a process that has its log directories locked, as Kafka has while it runs; it says when they are."""
    return [sys.executable, "-c", _LOCKS, *map(str, directories)]


@contextmanager
def locking(*directories: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Such a process, once it has them locked."""
    made = subprocess.Popen(broker_process(*directories), stdout=subprocess.PIPE)
    try:
        assert made.stdout is not None
        assert made.stdout.readline() == b"ready\n"
        yield made
    finally:
        made.kill()
        made.communicate()


def formatted(directory: Path, broker: int, cluster_id: str = "c1", directory_id: str = "d1") -> Path:
    """The directory, formatted for this broker; written in one step, as Kafka does."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = ["#", "#Sat Nov 28 12:00:00 UTC 2026", f"cluster.id={cluster_id}", "version=1", f"node.id={broker}"]
    if directory_id:
        lines.append(f"directory.id={directory_id}")
    new = directory / "meta.properties.tmp"
    new.write_text("\n".join([*lines, ""]))
    new.replace(directory / "meta.properties")
    return directory
