"""The demo, small: it ends well, its figures are all there, and nothing of it is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.processes.process_trees import Process, children_of, left_running
from waiting import limit, until

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

SMALL = ["--partitions", "60", "--rate", "40", "--hold", "8"]


def started(reports: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "demo", *SMALL, "--reports", str(reports), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


@pytest.mark.timeout(900)
def test_the_demo_keeps_every_invariant_and_writes_every_figure(tmp_path: Path) -> None:
    demo = started(tmp_path)
    said, _ = demo.communicate(timeout=limit(850))

    assert demo.returncode == 0, said[-4000:]
    report = json.loads((tmp_path / "demo.json").read_text())
    assert report["broken"] == []
    control, *faults = report["faults"]
    assert (control["fault"], control["acting"], control["partitions_moved"]) == ("external listener cut", False, 0)
    assert control["latency"]["acks=1"]["during"]["count"] > 0
    assert [fault["fault"] for fault in faults] == ["external listener cut", "slow disk"]
    for fault in faults:
        assert fault["partitions_moved"] == fault["partitions_led"] > 0
        assert fault["seconds_to_zero_leaders"] > 0
        assert fault["seconds_to_in_place"] > 0
        assert fault["led_by_the_broken_broker"]["max_seconds"] > 0
        for kind in ("acks=1", "acks=all", "fetch", "end to end"):
            for window in ("before", "after", "restored"):
                assert fault["latency"][kind][window]["count"] > 0
    assert faults[1]["seconds_to_held"] > 0
    assert faults[1]["seconds_to_out_of_isr"] > 0
    assert faults[1]["seconds_to_released"] > 0
    assert (report["replica_sets_changed"], report["offline_partitions"]) == (0, 0)
    assert report["orders_restored"] == report["orders_total"] >= 60
    assert report["acknowledged_lost"]["acks=all"]["lost"] == 0
    assert "Every invariant held." in said
    for word in ("step 1 of 7", "step 7 of 7", "Sick, ExternallyUnreachable", "Sick, StorageSlow", "clients felt"):
        assert word in said
    assert f"$ bellwether explain {faults[1]['broker']} --namespace kafka" in said


@pytest.mark.timeout(600)
def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    demo = started(tmp_path)
    seen: set[Process] = set()

    def traffic_runs() -> bool:
        seen.update(children_of(demo.pid))
        return (tmp_path / "demo-logs" / "traffic.log").exists()

    until(traffic_runs, 400, every=0.5, alive=lambda: demo.poll() is None)
    seen |= children_of(demo.pid)

    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=limit(150))

    assert demo.returncode == 130
    assert len(seen) >= 3 + 1 + 1 + 2 + 1 + 2 + 3 + 3  # brokers, controller, balancer, API, operator, probers, agents
    assert left_running(seen) == set()
