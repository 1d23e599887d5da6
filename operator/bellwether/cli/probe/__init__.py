"""``bellwether probe``: run a prober that measures brokers and reports signals."""

from __future__ import annotations

import signal
import sys

import click

from bellwether.cli.lazy_group import LazyGroup
from bellwether.probes.prober_commands import PROBERS

# command -> module:object, both called as the command
VERBS = {name: f"bellwether.cli.probe.{name}:{name}" for name in sorted(PROBERS)}
VERBS["self"] = "bellwether.cli.probe.selfcheck:selfcheck"


@click.group(cls=LazyGroup, groups={"Probers": VERBS})
def probe() -> None:
    """Run a prober: measure brokers and report signals.

    Each prober writes its signals to BrokerHealth.status.signals when they change, and renews a Lease of its own. When
    the Lease is not renewed, its signals are stale and ignored.
    """
    # Until a prober installs its own handler: exit through sys.exit, so that temporary credential files are removed.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
