"""``bellwether explain``: explain a broker's verdict: evidence, since when, and what would change it."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands import completion
from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@click.argument("broker", type=click.IntRange(0), shell_complete=completion.brokers)
@policy_options
@OUTPUT
def explain(**options: Any) -> None:
    """Explain the verdict on BROKER.

    Shows each signal with its reading, its threshold and since when; which signals were ignored and why; what keeps
    the broker from leading; and what would change the verdict.
    """
    from bellwether.cli.diagnosis.explain import explain as run

    run(**options)
