"""Print the result of an offline run: leaders and replicas of each broker, and blocked moves by reason."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from bellwether.cli.offline.offline_leadership import Run
from bellwether.core.reasons import DESCRIPTIONS


def show(run: Run) -> None:
    """Print the brokers after the run, and the blocked moves by reason."""
    console = Console()
    table = Table("broker", "rack", "leaders", "preferred", "replicas", "demoted", box=None, pad_edge=False)
    for broker in run.report.brokers:
        table.add_row(
            str(broker.broker),
            broker.rack or "-",
            str(broker.leaders),
            str(broker.preferred_leaders),
            str(broker.replicas),
            "yes" if broker.broker in run.record.demoted else "no",
        )
    console.print(table)
    for reason, count in sorted(Counter(h.reason for h in run.report.held).items()):
        console.print(f"{count} blocked, {reason}: {DESCRIPTIONS[reason]}")
    for hold in run.report.held_sample:
        console.print(f"  {hold.topic}-{hold.key.partition}: {hold.message}", highlight=False, soft_wrap=True)
