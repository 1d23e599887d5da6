"""``bellwether drain``: take leadership from a broker before it is stopped, and give it back."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("broker", type=click.IntRange(min=0))
@click.option("--policy", required=True, help="LeadershipPolicy that the broker belongs to.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy.")
@click.option("--end", is_flag=True, help="End the maintenance: the broker leads again once it is well.")
@click.option(
    "--until", metavar="TIME", default="30m", show_default=True, help="End by itself after 30m, 2h, 1d at the latest."
)
@click.option("--wait", is_flag=True, help="Wait until the broker may be stopped; with --end: until it leads again.")
@click.option("--timeout", metavar="TIME", default="5m", show_default=True, help="How long to wait at most.")
@click.option("--reason", default="", help="Why, for whoever comes next.")
def drain(**options: Any) -> None:
    """Take leadership from BROKER before it is restarted.

    Its signals demote nobody until the maintenance ends: with --end, or at its time. Exits with 3 and the reason where
    the operator holds the drain, as where partitions would be left without a leader, or where it does not end in time.
    `kubectl wait --for=condition=Drained bh/POLICY-BROKER` waits for the same.
    """
    from bellwether.cli.leadership.drain import drain as run

    run(**options)
