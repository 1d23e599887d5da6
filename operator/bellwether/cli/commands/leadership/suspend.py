"""``bellwether suspend`` and ``bellwether resume``: stop every move of leaders at once, and allow moves again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bellwether.cli.commands.kubernetes_options import policy_options


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--wait", "wait_seconds", default=10, show_default=True, help="Seconds to wait for the operator."),
        click.option("--all", "everything", is_flag=True, help="All policies of all namespaces, or of --namespace."),
        policy_options,
    ):
        command = option(command)
    return command


@click.command()
@_options
def suspend(**options: Any) -> None:
    """Stop every move of leaders of a policy, or of all.

    Sets spec.suspend, and waits until the operator has read it: from then on nothing is moved, restored or held.
    Demoted brokers stay demoted; a broker that is held (spec.quarantine) is released. Brokers are still judged and
    reported.

    \b
    Exit status:
      0  the operator has read it
      1  a policy could not be changed
      3  no operator has confirmed it in time
    """
    from bellwether.cli.leadership import suspend as command

    command.set_suspended(True, **options)


@click.command()
@_options
def resume(**options: Any) -> None:
    """Allow moves of leaders again, of a policy or of all.

    Removes spec.suspend, and waits until the operator has read it. A policy in mode Observe still moves nothing.
    Exit statuses are those of `bellwether suspend`.
    """
    from bellwether.cli.leadership import suspend as command

    command.set_suspended(False, **options)
