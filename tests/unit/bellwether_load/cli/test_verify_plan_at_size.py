"""A recheck of a large plan, as a process of its own: how much memory it takes."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bellwether_load.plan.problem import BrokerInput
from testkit.loads.small_planner import folders, loads, planned, problem, slot
from waiting import limit

PARTITIONS = 250_000
BROKERS = 100

# What getrusage tells began before this process did.
_MEASURED = """
import sys
from pathlib import Path
from bellwether.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*(l for l in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in l), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_a_quarter_of_a_million_partitions_take_little_memory(tmp_path: Path) -> None:
    rng = random.Random(1)
    brokers = tuple(BrokerInput(b) for b in range(1, BROKERS + 1))
    topics = [f"topic-{t:04}" for t in range(PARTITIONS // 50)]
    posed = problem(
        *(slot(i % 50, rng.sample(range(1, BROKERS + 1), 3), topic=topics[i // 50]) for i in range(PARTITIONS)),
        brokers=brokers,
    )
    known = loads(posed, *(1e4 * rng.paretovariate(1.5) for _ in range(PARTITIONS)))
    plan, moves = planned(posed, known, weights=dict.fromkeys(range(1, BROKERS + 1), 1))
    written = folders(str(tmp_path), posed, known, plan, moves)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, "verify-plan", *written.arguments()],
        capture_output=True,
        text=True,
        timeout=limit(120),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(moves):,}" in done.stdout
    peak = re.search(r"VmHWM:\s*(\d+) kB", done.stderr)
    assert peak is not None
    assert int(peak.group(1)) < 250_000
