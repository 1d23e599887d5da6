"""``bellwether suspend`` and ``bellwether resume``: stop every move of leaders at once, and allow moves again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from bellwether.cli.commands.common_options import NAMESPACE


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--wait", "wait_seconds", default=10, show_default=True, help="Seconds to wait for the operator."),
        click.option("--all", "everything", is_flag=True, help="All policies of all namespaces, or of --namespace."),
        NAMESPACE,
        click.argument("policy", required=False),
    ):
        command = option(command)
    return command


def _run(suspended: bool, everything: bool, namespace: str, **options: Any) -> None:
    from bellwether.cli.leadership import suspend as command

    chosen = click.get_current_context().get_parameter_source("namespace")
    everywhere = everything and chosen is ParameterSource.DEFAULT
    command.set_suspended(suspended, everything=everything, namespace=None if everywhere else namespace, **options)


@click.command()
@_options
def suspend(**options: Any) -> None:
    """Stop every move of leaders of POLICY, or of --all policies.

    Sets spec.suspend, and waits until the operator has read it: from then on nothing is moved, restored or paused.
    Demoted brokers stay demoted; a broker that is paused (spec.quarantine) is released. Brokers are still judged and
    reported. POLICY may be left out if the namespace has one.

    \b
    Exit status:
      0  the operator has read it
      1  a policy could not be changed
      3  no operator has confirmed it in time
    """
    _run(True, **options)


@click.command()
@_options
def resume(**options: Any) -> None:
    """Allow moves of leaders of POLICY, or of --all policies, again.

    Removes spec.suspend, and waits until the operator has read it. A policy in mode Observe still moves nothing.
    Exit statuses are those of `bellwether suspend`.
    """
    _run(False, **options)
