"""``bellwether supervise``: run a command as a child process and start it again when it ends.

A container that crashes makes its pod not ready; one whose child process crashes does not.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import click

from bellwether.adapters.clocks import SystemClock

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def supervise(command: Sequence[str]) -> None:
    """Run COMMAND, and restart it when it ends.

    For sidecars: their container keeps running when the sidecar crashes, so the broker's pod stays ready. The time
    before a new start grows from 1 to 60 seconds. SIGTERM and SIGINT end both.
    """
    stop, clock, delay = threading.Event(), SystemClock(), FIRST_SECONDS
    children: list[subprocess.Popen[bytes]] = []

    def end(number: int, _frame: object) -> None:
        stop.set()
        for child in children:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while not stop.is_set():
        began = clock.monotonic()
        child = subprocess.Popen([sys.executable, "-m", "bellwether", *command])
        children[:] = [child]
        if stop.is_set():  # the signal came before the child was known
            child.terminate()
        status = child.wait()
        if stop.is_set():
            sys.exit(status if status >= 0 else 128 - status)
        delay = FIRST_SECONDS if clock.monotonic() - began > LONGEST_SECONDS else delay
        click.echo(f"{' '.join(command[:2])} ended with status {status}: next start in {delay:g} s", err=True)
        stop.wait(delay)
        delay = min(2 * delay, LONGEST_SECONDS)
