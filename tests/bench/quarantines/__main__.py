"""``python -m quarantines``: play, measure, report, and leave nothing running.

Exit status: 0 when no acknowledged record was lost and each quarantine came and went as it should, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.report import commit
from quarantines.figures import row
from quarantines.plays import Played, Say, further_loss, slow_disk
from quarantines.stage import MILLISECONDS, PARTITIONS, PER_SECOND, Stage
from quarantines.tables import markdown
from realparts.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[3]
PLAYS: dict[str, Callable[[Stage, Say], Played]] = {
    "write-and-fsync": lambda stage, say: slow_disk(stage, "write+fsync", say),
    "fsync-only": lambda stage, say: slow_disk(stage, "fsync", say),
    "further-loss": further_loss,
}
EXPECTED = {"write-and-fsync": "ProcessPaused", "further-loss": "AnotherBrokerUnhealthy"}
"""How the operator must have put it; of the disk whose syncs alone are slow that is what is to be found out."""


def main() -> int:
    """Run the plays that are asked for; figures of others stay as they were."""
    parser = argparse.ArgumentParser(prog="python -m quarantines", description=__doc__)
    parser.add_argument("--only", choices=sorted(PLAYS), action="append", help="run this play alone; may be repeated")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    chosen = parser.parse_args()
    report = chosen.reports / "quarantine.json"
    good = True
    with ApiServer() as server:
        server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
        for name in chosen.only or PLAYS:
            result = play(name, server, chosen.reports / "quarantine-logs" / name)
            save(report, name, result)
            good &= result["lost"] == 0 and result["moments"]["quarantine"] == EXPECTED.get(
                name, result["moments"]["quarantine"]
            )
    print(markdown(json.loads(report.read_text())))
    print(f"figures: {report}")
    return 0 if good else 1


def play(name: str, server: ApiServer, logs: Path) -> dict[str, Any]:
    """One play on a stage of its own."""

    def say(text: str) -> None:
        print(f"{name}: {text}", flush=True)

    settings = {"mode": "Enabled", "limitSeconds": 300, "spareIsrMembers": 0}
    with Stage(server, logs, settings) as stage:
        played = PLAYS[name](stage, say)
        lost = stage.traffic.finish()
        sent = stage.traffic.sent
    rows = [row(phase, sent, PARTITIONS) for phase in played.phases]
    for one in rows:
        say(json.dumps(one))
    say(f"moments {json.dumps(played.moments)}; acknowledged and lost: {len(lost)}")
    return {
        "commit": commit(),
        "records": len(sent),
        "acknowledged": sum(1 for s in sent if not s.error),
        "lost": len(lost),
        "moments": played.moments,
        "phases": rows,
    }


def save(report: Path, name: str, result: dict[str, Any]) -> None:
    """Put one play's figures among those of the others."""
    known = json.loads(report.read_text()) if report.exists() else {}
    plays = {**known.get("plays", {}), name: result}
    setting = {
        "brokers": 3,
        "controllers": 1,
        "partitions": PARTITIONS,
        "replication_factor": 3,
        "min_insync_replicas": 2,
        "spare_isr_members": 0,
        "records_per_second": PER_SECOND,
        "delay_milliseconds": MILLISECONDS,
        "acks": "all",
    }
    report.parent.mkdir(parents=True, exist_ok=True)
    ordered = {one: plays[one] for one in PLAYS if one in plays}
    report.write_text(json.dumps({"setting": setting, "plays": ordered}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
