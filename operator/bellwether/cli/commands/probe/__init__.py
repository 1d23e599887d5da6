"""``bellwether probe``: run a prober that measures brokers and reports signals. One command per file."""

from __future__ import annotations

import signal
import sys

import click

from bellwether.cli.lazy_group import LazyGroup

# command -> module:object
VERBS = {
    "alertmanager": "bellwether.cli.commands.probe.alertmanager:alertmanager",
    "plugin": "bellwether.cli.commands.probe.plugin:plugin",
    "prometheus": "bellwether.cli.commands.probe.prometheus:prometheus",
    "reachability": "bellwether.cli.commands.probe.reachability:reachability",
    "replication": "bellwether.cli.commands.probe.replication:replication",
    "self": "bellwether.cli.commands.probe.selfcheck:selfcheck",
    "storage": "bellwether.cli.commands.probe.storage:storage",
}


@click.group(cls=LazyGroup, verbs=VERBS)
def probe() -> None:
    """Run a prober: measure brokers and report signals.

    Each prober writes its signals to BrokerHealth.status.signals when they change, and renews a Lease of its own. When
    the Lease is not renewed, its signals are stale and ignored.
    """
    # Until a prober installs its own handler: exit through sys.exit, so that temporary credential files are removed.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
