"""``python -m detectioncosts``: let everything settle, then measure for a while what it costs that nothing happens.

Then one broker is demoted by an override, and the operator is measured as long again once its leaders have moved; then
``bellwether status``, a few times.
Writes ``reports/detection-costs.json`` and prints a table. Exit status: 0 when every broker was called well all the
time and nothing but Leases was written, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from detectioncosts import judging
from detectioncosts.measuring import WRITES, between, rates, sample, usage
from detectioncosts.stage import LEASES, Stage
from realparts.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[2]
STATUS_ROUNDS = 5
READS = ("GET", "LIST", "WATCH")


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m detectioncosts", description=__doc__)
    parser.add_argument("--policies", type=int, default=1, help="policies, each of its own cluster (%(default)s)")
    parser.add_argument("--brokers", type=int, default=1000, help="brokers of a cluster (%(default)s)")
    parser.add_argument("--partitions", type=int, default=10_000, help="partitions of a cluster (%(default)s)")
    parser.add_argument("--vantages", type=int, default=3, help="vantages that report (%(default)s)")
    parser.add_argument("--probers", type=int, default=1, help="of these, how many really probe (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="how long to measure (%(default)s)")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    logs = asked.reports / "detection-costs-logs"
    shutil.rmtree(logs, ignore_errors=True)
    with ApiServer() as server:
        server.apply(ROOT / "crds")
        sizes = {name: getattr(asked, name) for name in ("policies", "brokers", "partitions", "vantages", "probers")}
        with Stage(server, logs, **sizes) as stage:
            stage.start()
            stage.settle(300)
            found = {
                **sizes,
                **measure(stage, server, asked.policies * asked.brokers, asked.seconds),
                "machine": _machine(),
            }
            stage.demote(1)
            stage.quiet(300)
            found["one_demoted"] = one_demoted(stage, asked.seconds)
            found["status_cpu_seconds"] = [round(stage.status_seconds(), 2) for _ in range(STATUS_ROUNDS)]
    found["judge_milliseconds"] = _judge(asked.brokers, asked.partitions, asked.vantages)
    report = asked.reports / "detection-costs.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(found, indent=2) + "\n")
    show(found)
    print(f"written to {report}")
    return 0 if found["other_writes_per_second"] == 0 and found["all_well_throughout"] else 1


def measure(stage: Stage, server: ApiServer, brokers: int, seconds: float) -> dict[str, Any]:
    """Figures over so many seconds in which nothing happens; ``brokers`` of all clusters together."""
    watched = {name: process.pid for name, process in stage.processes.items()}
    watched |= {process.name: process.pid for process in server.processes()}
    probers = [name for name in watched if name.startswith("prober ")]
    before = {name: usage(pid) for name, pid in watched.items()}
    # Counted over their own time: on a busy machine the other readings in between take seconds.
    requests_before, counted = stage.requests(), time.monotonic()
    said_before = {name: stage.metrics(name) for name in (*probers, "operator")}
    traffic_before, began = stage.traffic(), time.monotonic()
    time.sleep(seconds)
    traffic, lasted = stage.traffic(), time.monotonic() - began
    requests_after, counted = stage.requests(), time.monotonic() - counted
    after = {name: usage(pid) for name, pid in watched.items()}
    said_after = {name: stage.metrics(name) for name in (*probers, "operator")}
    writes = rates(requests_before, requests_after, counted, WRITES)
    leases = sum(rate for what, rate in writes.items() if what.endswith(f" {LEASES}"))

    def grown(name: str, metric: str, **labels: str) -> float:
        return sample(said_after[name], metric, **labels) - sample(said_before[name], metric, **labels)

    turns = grown("operator", "bellwether_reconcile_duration_seconds_count")
    turn_seconds = grown("operator", "bellwether_reconcile_duration_seconds_sum")
    return {
        "seconds": round(lasted, 1),
        "lease_writes_per_second": round(leases, 3),
        "other_writes_per_second": round(sum(writes.values()) - leases, 3),
        "writes_per_second": writes,
        "reads_per_second": rates(requests_before, requests_after, counted, READS),
        "processes": {name: between(before[name], after[name]) for name in watched},
        "questions_per_second": {
            name: {
                "answered": round(grown(name, "bellwether_probe_requests_total", result="ok") / lasted, 1),
                "mean_milliseconds": round(_mean(grown, name) * 1000, 2),
            }
            for name in probers
        },
        "kafka": traffic_before.until(traffic, lasted),
        "operator_turns": turns,
        "operator_turn_mean_seconds": round(turn_seconds / turns, 4) if turns else None,
        "all_well_throughout": all(
            grown(name, "bellwether_probe_reports_total") == 0
            and sample(said_after[name], "bellwether_probe_reading") == brokers
            for name in probers
        ),
    }


def one_demoted(stage: Stage, seconds: float) -> dict[str, Any]:
    """What the operator uses, and asks of the brokers, over so many seconds."""
    pid = stage.processes["operator"].pid
    before, traffic = usage(pid), stage.traffic()
    time.sleep(seconds)
    used = between(before, usage(pid))
    return {**used, "kafka": traffic.until(stage.traffic(), seconds)}


def show(found: dict[str, Any]) -> None:
    """The figures for a person."""
    sizes = f"{found['policies']} x {found['brokers']} brokers and {found['partitions']:,} partitions"
    title = f"{sizes}, {found['vantages']} vantages, nothing happens for {found['seconds']:g} s"
    table = Table("process", "CPU (cores)", "resident MB", "peak MB", "threads", title=title)
    for name, used in found["processes"].items():
        cells = (used[key] for key in ("cpu_cores", "resident_megabytes", "peak_megabytes", "threads"))
        table.add_row(name, *map(str, cells))
    cells = (found["one_demoted"][key] for key in ("cpu_cores", "resident_megabytes", "peak_megabytes", "threads"))
    table.add_row("operator, one broker demoted", *map(str, cells))
    console = Console(width=100)
    console.print(table)
    for when, asked in (("settled", found["kafka"]), ("one demoted", found["one_demoted"]["kafka"])):
        console.print(
            f"asked of Kafka, {when}: {asked['megabytes_per_minute']} MB and {asked['requests_per_minute']} requests a"
            f" minute; {asked['brokers_asked']} brokers, the largest share {asked['largest_share']:.0%}"
        )
    screens = found["status_cpu_seconds"]
    console.print(f"bellwether status: median {statistics.median(screens)} s of CPU (worst {max(screens)} s)")
    leases, others = found["lease_writes_per_second"], found["other_writes_per_second"]
    judged = found["judge_milliseconds"]
    for turn, said in (("at_rest", "while nothing is new"), ("anew", "when each is judged in full")):
        figures = f"{judged[turn]['median']} ms (worst {judged[turn]['worst']} ms)"
        console.print(f"the judge takes {figures} of CPU for all brokers {said}")
    console.print(f"API writes a second: {leases} renewals of Leases, {others} others")
    for name, asked in found["questions_per_second"].items():
        console.print(f"{name}: {asked['answered']} answers a second, {asked['mean_milliseconds']} ms each")


def _judge(brokers: int, partitions: int, vantages: int) -> dict[str, dict[str, float]]:
    timings = judging.timings(brokers, partitions, vantages)
    return {"at_rest": _figures(timings.at_rest), "anew": _figures(timings.anew)}


def _figures(taken: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(taken) * 1000, 1), "worst": round(max(taken) * 1000, 1)}


def _mean(grown: Any, name: str) -> float:
    count = grown(name, "bellwether_probe_request_duration_seconds_count")
    return float(grown(name, "bellwether_probe_request_duration_seconds_sum") / count) if count else 0.0


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}


if __name__ == "__main__":
    sys.exit(main())
