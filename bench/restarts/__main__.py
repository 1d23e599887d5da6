"""``python -m restarts``: the same rolling restart twice on the same brokers, first without the operator, then with it.

Out: ``reports/restart.json`` and a table. Between the two, an election by hand puts every leader back, so that both
begin alike. Exit status: 0 when with the operator every leader came back without a hand, 1 otherwise, 130 after Ctrl-C.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rich.console import Console

from demo.traffic import Traffic
from demo.watch import Watch
from faults.report import commit
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from restarts.figures import figures
from restarts.rolling import roll
from restarts.settings import KAFKA_CHECKS_SECONDS, ROOT, Settings, parse
from restarts.table import table
from testkit.kafka.kafka_site import KafkaSite
from testkit.processes.sites import Site
from waiting import until

TOPICS = ("orders", "payments", "clicks", "invoices", "telemetry", "audit")
VANTAGE = "zone-a"
WAVES = {"steps": [10, 50, 100], "pauseSeconds": 5, "skipUpToLeaders": 5, "minDowntimeSeconds": 5}
ELECTION = {"intervalSeconds": 10}
STEADY_SECONDS = 60.0


def main() -> int:
    """Run once; see the module for the exit status."""
    settings, console = parse(sys.argv[1:]), Console(width=None if sys.stdout.isatty() else 150)
    shutil.rmtree(settings.logs, ignore_errors=True)
    try:
        with ExitStack() as stack:
            report = run(settings, console, stack)
    except KeyboardInterrupt:
        console.print("\ninterrupted", style="bold")
        return 130
    settings.reports.mkdir(parents=True, exist_ok=True)
    settings.report.write_text(json.dumps(report, indent=2) + "\n")
    console.print(table(report))
    console.print(f"figures: {settings.report}; logs: {settings.logs}", highlight=False)
    return 0 if report["with_operator"]["leaders_out_of_place_at_the_end"] == 0 else 1


def run(settings: Settings, console: Console, stack: ExitStack) -> dict[str, Any]:
    """Both ways, one after another; what is started goes onto ``stack``."""
    kafka = KafkaCluster(brokers=settings.brokers, proxied=False, properties={"min.insync.replicas": "2"})
    kafka.start()
    stack.callback(kafka.stop)
    server = stack.enter_context(ApiServer())
    server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
    settings.logs.mkdir(parents=True, exist_ok=True)
    site = Site(server, kafka, settings.logs)
    stack.callback(end, site)
    site.topics(dict.fromkeys(TOPICS, settings.partitions // len(TOPICS)), configs={"min.insync.replicas": "2"})
    watch = stack.enter_context(Watch({b.id: b.internal for b in kafka.brokers.values()}))

    console.print("[bold]without the operator[/]")
    alone = one_way(kafka, watch, settings, site, console, "without")
    KafkaSite(kafka).restore_leaders()
    settle(watch)
    console.print("[bold]with the operator[/]")
    site.policy(
        detection={"externalReachability": {"vantages": [VANTAGE]}},
        promotion={"stabilizationSeconds": 10, "waves": WAVES},
        election=ELECTION,
    )
    site.operator()
    site.prober(VANTAGE)
    site.until_reported()
    guarded = one_way(kafka, watch, settings, site, console, "with")
    return {
        "schema": 1,
        "commit": commit(),
        "brokers": settings.brokers,
        "partitions": settings.partitions,
        "records_per_second": settings.rate,
        "kafka_balances_every_seconds": KAFKA_CHECKS_SECONDS,
        "patience_seconds": settings.patience,
        "waves": WAVES,
        "election": ELECTION,
        "without_operator": alone,
        "with_operator": guarded,
    }


def one_way(
    kafka: KafkaCluster, watch: Watch, settings: Settings, site: Site, console: Console, name: str
) -> dict[str, Any]:
    """One rolling restart under load, with its figures."""

    def check() -> None:
        traffic.check()
        for process in site.processes:
            if not process.alive:
                raise RuntimeError(f"{process.name} has ended by itself:\n{process.tail(15)}")

    partitions = settings.partitions // len(TOPICS) * len(TOPICS)
    log = settings.logs / f"traffic-{name}.log"
    with Traffic(kafka.bootstrap, TOPICS, partitions, settings.rate, log) as traffic:
        settle(watch, check)
        rolled = roll(kafka, watch, settings, check, lambda text: console.print(f"  {text}", style="dim"))
        samples = traffic.finish()
    history = watch.ask(lambda seen: {n: list(c) for n, c in seen.history.items() if n[0] in TOPICS})
    left = watch.ask(lambda seen: seen.out_of_place())
    return figures(rolled, samples, history, left)


def end(site: Site) -> None:
    """End operator and prober, if they were started."""
    for process in site.processes:
        process.ask_to_stop()
    for process in site.processes:
        process.stop(10)


def settle(watch: Watch, check: Callable[[], None] = lambda: None) -> None:
    """Wait until every partition is led by the first of its order, the group's own topic included."""

    def settled() -> bool:
        check()
        return watch.ask(lambda seen: all(p.leader == p.replicas[0] for p in seen.view.values()))

    until(settled, STEADY_SECONDS, "every partition is led by the first of its order", every=0.5)


if __name__ == "__main__":
    sys.exit(main())
