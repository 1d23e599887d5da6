"""`make faults`, two quick ones: judged right, with every figure, and nothing of it is left running."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.processes.process_trees import Process, children_of, left_running
from waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

QUICK = ("listener-cut", "one-vantage-broken")


@pytest.mark.timeout(600)
def test_quick_faults_get_the_right_verdicts_and_leave_nothing_running(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "faults", "--only", ",".join(QUICK), "--reports", str(tmp_path)]
    log = tmp_path / "out.log"
    with log.open("w") as output:
        faults = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    seen: set[Process] = set()

    def ended() -> bool:
        seen.update(children_of(faults.pid))
        return faults.poll() is not None

    until(ended, 560, every=0.5, seen=lambda: log.read_text()[-4000:])

    assert faults.returncode == 0, log.read_text()[-4000:]
    report = json.loads((tmp_path / "faults.json").read_text())
    assert (report["scenarios"], report["right"], report["healthy_brokers_demoted"]) == (2, 2, 0)
    cut, vantage = report["results"]
    assert cut["verdict"] == "Sick (ExternallyUnreachable)"
    # Two watchers measured them: which was the earlier is nothing to go by where either may be kept waiting.
    assert cut["seconds_to_verdict"] > 0
    assert cut["seconds_to_zero_leaders"] > 0
    assert cut["demoted"] == [1]
    assert vantage["verdict"] == "Healthy (SignalsPassing)"
    assert (vantage["demoted"], vantage["seconds_to_verdict"]) == ([], None)
    assert len(seen) >= 3 + 1 + 2 + 1 + 3 + 3  # brokers, balancer, API and its store, operator, probers
    assert left_running(seen) == set()
