"""`make bench-cures`, one fault in its quick form: the cure ends what it is to end, and nothing is left running."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.processes.process_trees import Process, children_of, left_running
from waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


@pytest.mark.timeout(600)
def test_a_held_shutdown_ends_most_of_what_a_slow_disk_costs_acks_all(tmp_path: Path) -> None:
    chosen = ["--fault", "writes-500ms", "--cure", "nothing", "--cure", "hold", "--seconds", "20"]
    log, seen = tmp_path / "out.log", set[Process]()
    with log.open("w") as output:
        command = [sys.executable, "-m", "cures", *chosen, "--reports", str(tmp_path)]
        bench = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def ended() -> bool:
        seen.update(children_of(bench.pid))
        return bench.poll() is not None

    until(ended, 560, every=0.5, seen=lambda: log.read_text()[-4000:])

    assert bench.returncode == 0, log.read_text()[-4000:]
    rows = {(r["cure"], r["clients"]): r for r in json.loads((tmp_path / "cures.json").read_text())["rows"]}
    assert {cure for cure, _ in rows} == {"nothing", "hold"}
    for clients in ("acks=all, others", "acks=all, broker led"):
        held, without = rows["hold", clients], rows["nothing", clients]
        assert held["requests"] > 0
        assert held["lost_seconds_without"] == without["lost_seconds"] > 10
        assert held["lost_seconds"] < 0.7 * without["lost_seconds"]
    assert left_running(seen) == set()
