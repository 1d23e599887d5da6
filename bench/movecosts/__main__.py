"""``python -m movecosts``: move 100, 1,000 and 5,000 leaders of a real broker away and back, under acks=all traffic.

The operator moves them, by an override; clients produce to partitions of that broker alone. Out:
``reports/movecosts.json`` and a table: what clients lost, how long elections took, and the cost that the operator
measured from them (``status.moveCost``). Exit status: 0 when no acknowledged record was lost, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.settings.harm import Objectives
from cures.traffic import Traffic
from faults.report import commit
from movecosts.losses import lost_seconds, reached_objective
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from testkit.processes.sites import Site

ROOT = Path(__file__).resolve().parents[2]
MOVED, PER_SECOND = 1, 25.0
"""A client sends a request for each partition and has five in flight: more records would queue on a busy machine."""
QUIET_SECONDS, AFTER_SECONDS = 10.0, 8.0
OBJECTIVE_SECONDS = Objectives().produce_milliseconds / 1000


def main() -> int:
    """Measure each number of leaders on one cluster; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m movecosts", description=__doc__)
    parser.add_argument("--leaders", type=int, nargs="+", default=[100, 1000, 5000], help="default: %(default)s")
    parser.add_argument("--repeat", type=int, default=3, help="moves away and back for each number (%(default)s)")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    chosen = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    logs = chosen.reports / "movecosts-logs"
    with ApiServer() as server, KafkaCluster(3, controllers=1, proxied=False, heap="512m") as kafka:
        server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
        rows = [measured(server, kafka, logs, leaders, chosen.repeat, console) for leaders in chosen.leaders]
    chosen.reports.mkdir(parents=True, exist_ok=True)
    report = {"commit": commit(), "objective_ms": OBJECTIVE_SECONDS * 1000, "results": rows}
    (chosen.reports / "movecosts.json").write_text(json.dumps(report, indent=2) + "\n")
    console.print(table(rows))
    return 1 if any(row["lost_records"] for row in rows) else 0


def measured(
    server: ApiServer, kafka: KafkaCluster, logs: Path, leaders: int, repeat: int, console: Console
) -> dict[str, Any]:
    """One number of leaders, on a topic and with an operator of its own."""
    logs.mkdir(parents=True, exist_ok=True)
    site = Site(server, kafka, logs)
    topic = f"moved-{leaders}"
    try:
        console.print(f"{leaders:,} leaders: creating the partitions")
        site.topics({topic: leaders}, assignments={topic: [[MOVED, 2, 3]] * leaders}, timeout_seconds=300)
        site.policy(promotion={"stabilizationSeconds": 1, "waves": {"skipUpToLeaders": 2 * leaders}})
        site.operator()
        site.until_reported(seconds=120)
        trips = []
        with Traffic(kafka.bootstrap, topic, leaders, PER_SECOND) as traffic:
            time.sleep(QUIET_SECONDS)  # connections and metadata of the clients
            for number in range(repeat):
                trips.append(trip(site, traffic))
                console.print(f"{leaders:,} leaders, {number + 1} of {repeat}: {json.dumps(trips[-1])}")
            lost = traffic.finish()
        status = site.status()["moveCost"]
    finally:
        site.close()
    return {
        "leaders": leaders,
        "trips": trips,
        "lost_records": len(lost),
        "election_seconds": [ms / 1000 for ms in status["electionMilliseconds"]],
        "cost_seconds": status["milliseconds"] / 1000,
    }


def trip(site: Site, traffic: Traffic) -> dict[str, float]:
    """Away and back once: what clients lost on each way."""
    before = site.orders()
    began = time.monotonic()
    time.sleep(QUIET_SECONDS)
    left = time.monotonic()
    site.demote(MOVED)
    site.until(lambda: site.displaced(MOVED, before), 180, "the leaders have left")
    away = time.monotonic() - left
    time.sleep(AFTER_SECONDS)
    returned = time.monotonic()
    site.lift(MOVED)
    site.until_restored(before, 180)
    back = time.monotonic() - returned
    time.sleep(AFTER_SECONDS)
    ended, sent = time.monotonic(), traffic.sent
    objective = reached_objective(sent, began, left, OBJECTIVE_SECONDS)
    return {
        "objective_ms": round(objective * 1000),
        "away_seconds": round(away, 2),
        "back_seconds": round(back, 2),
        "lost_away_seconds": round(lost_seconds(sent, left, returned, objective), 2),
        "lost_back_seconds": round(lost_seconds(sent, returned, ended, objective), 2),
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """A row for each number of leaders."""
    made = Table(title="What a move away and back costs clients", caption=f"assumed until measured: {MoveCost()}")
    heads = ("leaders", "lost, both ways", "smallest to largest", "election, median", "cost by the rule", "objective")
    for head in heads:
        made.add_column(head, justify="right")
    for row in rows:
        lost = [t["lost_away_seconds"] + t["lost_back_seconds"] for t in row["trips"]]
        made.add_row(
            f"{row['leaders']:,}",
            f"{statistics.median(lost):.2f} s",
            f"{min(lost):.2f} to {max(lost):.2f} s",
            f"{statistics.median(row['election_seconds']):.2f} s",
            f"{row['cost_seconds']:g} s",
            f"{max(t['objective_ms'] for t in row['trips'])} ms",
        )
    return made


if __name__ == "__main__":
    sys.exit(main())
