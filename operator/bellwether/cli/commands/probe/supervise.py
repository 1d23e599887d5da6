"""``bellwether supervise``: run a command and start it again when it ends."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def supervise(command: tuple[str, ...]) -> None:
    """Run the command COMMAND, and restart it when it ends.

    For sidecars: their container keeps running when the sidecar crashes, so the broker's pod stays ready. The time
    before a new start grows from 1 to 60 seconds. SIGTERM and SIGINT end both.
    """
    from bellwether.cli.probe.supervise import supervise as run

    run(command)
