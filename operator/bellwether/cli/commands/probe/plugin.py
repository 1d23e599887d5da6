"""``bellwether probe plugin``: measure every broker with a kind of signal that another package brings along."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--type", "type_", metavar="KIND", help="The kind to measure, as its package and the policy name it.")
@click.option("--source", metavar="NAME", help="Stable name of this place, such as eu-west-1a.")
@click.option("--list", "list_", is_flag=True, help="List the kinds that are installed, and end.")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    multiple=True,
    help="With --once: measure this cluster, without Kubernetes, TLS or SASL. May be repeated.",
)
@click.option(
    "--setting", "settings", metavar="NAME=VALUE", multiple=True, help="With --bootstrap: a setting of the kind."
)
def plugin(**options: Any) -> None:
    """Measure brokers with a signal kind of another package.

    The package is installed beside Bellwether and announces its kind by an entry point of group bellwether.signals;
    thresholds and settings come from the policy's detection.plugins.
    """
    from bellwether.cli.probe.plugin import plugin as run

    run(**options)
