"""A process that compacts is killed by the system, at any moment: the store reads right after."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction import LINGER, Compactor
from testkit.loads.sample_rounds import CLUSTER, DAY, held, rows, told
from waiting import until

# Enough for a compaction to take a while.
ROUNDS, PARTITIONS = 30, 300
COMPACT = """
import sys
from datetime import UTC, datetime
from bellwether_load.store.samples.compaction import Compactor
from bellwether_load.store.filesystems import Store
print("begun", flush=True)
Compactor(Store.open(sys.argv[1]), sys.argv[2], print).run(datetime(2036, 1, 1, tzinfo=UTC))
"""


def compacting(directory: Path) -> subprocess.Popen[str]:
    """A process that compacts, and removes what it has compacted."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPACT, str(directory), CLUSTER], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def writing(store: Store, processes: list[subprocess.Popen[str]]) -> None:
    """Wait until one of them writes, or has written all that there was to write."""
    before = {file.path for file in store.list(temporary=True)}
    until(
        lambda: (
            {file.path for file in store.list(temporary=True)} - before or any(p.poll() is not None for p in processes)
        ),
        60,
        every=0.001,
    )


def test_compactions_killed_at_any_moment_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    wanted: Counter[object] = Counter()
    interrupted = 0
    for number in range(24):
        for minute in range(number * ROUNDS, (number + 1) * ROUNDS):
            one = rows(minute, PARTITIONS)
            sample_files.write_round(store, one, f"{minute:08x}")
            wanted += Counter(told(one))
        # Two at once: they see each other's files come and go.
        processes = [compacting(tmp_path), compacting(tmp_path)]
        if number % 2:
            writing(store, processes)
        else:
            time.sleep(0.05 * number)
        for process in processes:
            process.kill()
            process.wait()
        interrupted += len(store.list(temporary=True))
        assert Counter(held(store, DAY)) == wanted
        if interrupted and number >= 2:
            break
    assert interrupted, "some were killed while they wrote"
    for _ in range(2):
        now = max(file.modified for file in store.list() if file.modified is not None) + LINGER
        Compactor(store, CLUSTER, print).run(now)
    assert Counter(held(store, DAY)) == wanted
    assert len(store.list()) == 1
