"""The command line as ``kubectl leaders``: entry points of the kubectl plug-in and of its completion."""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete

from bellwether.cli.main import main

NO_FILES = 4
"""Directive to kubectl: complete no file names (cobra's ShellCompDirectiveNoFileComp)."""


def run() -> None:
    """``kubectl-leaders``, which kubectl runs for ``kubectl leaders``."""
    main(prog_name="kubectl leaders")


def complete() -> None:
    """``kubectl_complete-leaders``, which kubectl runs with the words typed so far, the last one incomplete."""
    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, "kubectl leaders", "_BELLWETHER_COMPLETE").get_completions(words, incomplete)
    for one in found:
        click.echo(f"{one.value}\t{one.help}" if one.help else one.value)
    click.echo(f":{NO_FILES}")
