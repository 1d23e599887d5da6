"""``bellwether losses``: what the other brokers would carry if a broker or a rack were lost now.

In: a store with measured loads, and the cluster as it is (``--bootstrap``) or as the newest problem in the store has
it. Out: a table or a document. Moves nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.kafka_target import KafkaTarget, kafka_options
from bellwether.cli.output import OUTPUT, print_document, printed
from bellwether.core.settings.objective import Objective
from bellwether.core.settings.rebalance import Rebalance
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether_load.page.figures import Unit
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.problem import Problem

if TYPE_CHECKING:
    from bellwether_load.losses.loss_report import LossReport
    from bellwether_load.store.filesystems import Store

_TOP = 20
_RACK = "rack"


@click.command()
@click.option("--store", "uri", required=True, metavar="URI", help="Store of loads and plans, as for `rebalance`.")
@OUTPUT
@kafka_options
def losses(uri: str, output: str, kafka: KafkaTarget) -> None:
    """Show what the others carry if a broker or rack is lost.

    The next replica in the order that is in the ISR then leads each partition of the lost one. Loads are the newest in
    the store. --bootstrap reads leaders and orders from the cluster; without it they are those of the problem that the
    loads were measured for. Moves nothing. Exit status 1 if no load is measured.
    """
    from bellwether_load.store.filesystems import Store

    try:
        store = Store.open(uri)
        store.require()
        document = _document(store, kafka)
    except BellwetherError as error:
        raise click.ClickException(printable(str(error))) from None
    if output == "table":
        _show(document)
    else:
        print_document(document, output)


def _document(store: Store, kafka: KafkaTarget) -> dict[str, Any]:
    from bellwether_load.losses.loss_input import loss_input
    from bellwether_load.losses.loss_report import loss_report
    from bellwether_load.store.columns import table_of
    from bellwether_load.store.plans.load_hours import read_account, with_loads
    from bellwether_load.store.plans.problem_files import SCHEMA, read_problem

    name = _newest(store)
    folder = store.below(f"loads/{name}")
    account, problem = read_account(folder), read_problem(store, name)
    if kafka.servers:
        problem = _present(kafka, problem.header.objective)
    whose = account.get("clusterId")
    if whose != problem.header.cluster_id:
        raise Terminal(f"loads {name} are of Kafka cluster {whose}, not of {problem.header.cluster_id}")
    rows = with_loads(folder, table_of(problem.partitions, SCHEMA), problem.header)
    known = int(rows.rates.known.sum())
    if not known:
        raise Terminal(
            f"no partition has a measured load in loads {name}: let `bellwether sample` run for some"
            " minutes, then run `bellwether rebalance --dry-run`"
        )
    report = loss_report(loss_input(rows))
    missing = len(problem.partitions) - known
    rested = Evidence.of(account, len(problem.partitions), missing)
    unread = known - int(rows.rates.consumed.sum()) if problem.header.objective.consumption else 0
    text = rested.line(len(problem.partitions), missing, unread)
    evidence = {"text": text, "hours": rested.hours, "share": rested.share}
    evidence |= {"loads": name, "partitions": len(problem.partitions), "measured": known}
    return {"evidence": evidence, **_figures(problem, report)}


def _figures(problem: Problem, report: LossReport) -> dict[str, Any]:
    brokers = sorted(problem.header.brokers, key=lambda b: b.id)
    racks = sorted({b.rack for b in brokers if b.rack})
    normal = float(report.normal)

    def ratio(load: Fraction) -> float | None:
        return round(float(load) / normal, 4) if normal else None

    found: list[dict[str, Any]] = [
        {
            "kind": kind,
            "lost": racks[loss.domain] if kind == _RACK else brokers[loss.domain].id,
            "busiest": brokers[loss.broker].id,
            "bytesPerSecond": float(loss.load),
            "ratio": ratio(loss.load) or 0.0,
            "decidedBy": [f"{problem.partitions[row].topic}-{problem.partitions[row].partition}" for row in rows],
            "leaderless": loss.leaderless,
        }
        for kind, of in report.losses.items()
        for loss, rows in zip(of, report.deciding[kind], strict=True)
    ]
    found.sort(key=lambda loss: -loss["bytesPerSecond"])
    reachable = {kind: ratio(load) for kind, load in report.reachable.items()}
    return {
        "busiest": normal,
        "losses": found,
        "reachableByReorders": {"ratio": reachable, "partitions": report.reorders} if reachable else None,
    }


def _newest(store: Store) -> str:
    """The newest problem with loads, whose name they share."""
    from bellwether_load.store.plans.load_hours import ACCOUNT
    from bellwether_load.store.plans.problem_files import problem_names

    for name in reversed(problem_names(store)):
        if store.exists(f"loads/{name}/{ACCOUNT}"):
            return name
    raise Terminal(f"{store.where('loads')} has no complete loads: run `bellwether rebalance --dry-run` once")


def _present(kafka: KafkaTarget, objective: Objective) -> Problem:
    """The cluster as it is, without an undo record: nothing is held for it."""
    from bellwether.adapters.clocks import SystemClock
    from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
    from bellwether.adapters.kafka.metadata_reader import KafkaReader
    from bellwether.core.model.undo_record import UndoRecord
    from bellwether_load.plan.problem_builder import problem_by_hand

    cluster = KafkaReader(BrokerPool(kafka.connection(), MANUAL_LIMITS)).read()
    record, now = UndoRecord(cluster.cluster_id), SystemClock().now().replace(microsecond=0)
    settings = Rebalance(objective=objective)
    return problem_by_hand(cluster, record, settings, policy="offline/losses", made_at=now, internal=True)


def _show(document: dict[str, Any]) -> None:
    evidence, reachable = document["evidence"], document["reachableByReorders"]
    rate = Unit.of(max([document["busiest"], *(loss["bytesPerSecond"] for loss in document["losses"])])).said
    click.echo(evidence["text"])
    if missing := evidence["partitions"] - evidence["measured"]:
        click.echo(f"figures may be too low: partitions without a measured load ({missing:,}) count as 0")
    click.echo(f"busiest broker: {rate(document['busiest'])}")
    lower = []
    for kind in dict.fromkeys(loss["kind"] for loss in document["losses"]):
        worst = next(loss for loss in document["losses"] if loss["kind"] == kind)
        name = "a rack" if kind == _RACK else "one broker"
        click.echo(
            f"worst loss of {name}: without {kind} {printable(str(worst['lost']))}, broker {worst['busiest']} carries"
            f" {rate(worst['bytesPerSecond'])}, {worst['ratio']:.2f} times the busiest broker"
        )
        if reachable and (better := reachable["ratio"].get(kind)) is not None and better < worst["ratio"]:
            lower.append(f"{better:.2f} times for {name}")
    if lower:
        orders = f"other orders of {reachable['partitions']:,} partitions, with the same leaders, would bring this to"
        click.echo(f"{orders} {' and '.join(lower)}: `bellwether rebalance` plans such orders")
    if left := max((loss["leaderless"] for loss in document["losses"]), default=0):
        click.echo(f"up to {left:,} partitions would have no leader (LEADERLESS): no other replica in the ISR may lead")
    rows = [
        (
            f"{loss['kind']} {printable(str(loss['lost']))}",
            str(loss["busiest"]),
            rate(loss["bytesPerSecond"]),
            f"{loss['ratio']:.2f}",
            str(loss["leaderless"]),
            printable(", ".join(loss["decidedBy"]) or "-"),
        )
        for loss in document["losses"][:_TOP]
    ]
    printed(("LOST", "BUSIEST", "LOAD", "TIMES", "LEADERLESS", "HEAVIEST PARTITIONS TAKEN OVER"), rows)
    if (more := len(document["losses"]) - _TOP) > 0:
        click.echo(f"{more} more: use -o json")
