"""``bellwether probe plugin``: measure every broker with a signal type from another package."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--type", "type_", metavar="TYPE", help="Signal type of the plugin, as in detection.plugins[].type.")
@click.option("--source", metavar="NAME", help="Stable name of this location, such as eu-west-1a.")
@click.option("--list", "list_", is_flag=True, help="List the installed plugins and exit.")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    multiple=True,
    help="With --once: measure this cluster, without Kubernetes, TLS or SASL; repeatable.",
)
@click.option(
    "--setting", "settings", metavar="NAME=VALUE", multiple=True, help="With --bootstrap: plugin setting; repeatable."
)
def plugin(**options: Any) -> None:
    """Measure brokers with a plugin and report signals.

    A plugin is a signal type of another package, which is installed next to Bellwether and registers an entry point of
    the group bellwether.signals. Thresholds and settings come from detection.plugins of the policy.
    """
    from bellwether.cli.probe.plugin import plugin as run

    run(**options)
