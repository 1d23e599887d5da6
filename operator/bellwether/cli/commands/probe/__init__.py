"""``bellwether probe``: look at brokers from where this process stands, and say what was seen. One verb a file."""

from __future__ import annotations

import signal
import sys

import click

from bellwether.cli.lazy_group import Verbs

# verb -> module:command
VERBS = {
    "alertmanager": "bellwether.cli.commands.probe.alertmanager:alertmanager",
    "plugin": "bellwether.cli.commands.probe.plugin:plugin",
    "prometheus": "bellwether.cli.commands.probe.prometheus:prometheus",
    "reachability": "bellwether.cli.commands.probe.reachability:reachability",
    "replication": "bellwether.cli.commands.probe.replication:replication",
    "self": "bellwether.cli.commands.probe.selfcheck:selfcheck",
    "storage": "bellwether.cli.commands.probe.storage:storage",
}


@click.group(cls=Verbs, verbs=VERBS)
def probe() -> None:
    """Look at brokers from here, and report what was seen.

    Each prober writes its own entries of BrokerHealth.status.signals, when they change, and renews a Lease of its own:
    when it falls silent its entries count for nothing.
    """
    # Until a prober sees to its own end: what only this process needs, such as files of credentials, is removed.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
