"""``plan``: compute a plan from a problem and measured loads. The last line of the output is its digest."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterator

import click

from bellwether.ports.errors import BellwetherError
from bellwether_load.jobs.compute_plan import compute_plan, write_plan


@click.command()
@click.option("--store", "uri", required=True, metavar="URI", help="Store of problems, loads and plans.")
@click.option(
    "--problem", "problem", required=True, metavar="NAME", help="Name of the problem: problems/NAME in the store."
)
@click.option("--loads", "loads", required=True, metavar="NAME", help="Name of the loads: loads/NAME in the store.")
def plan(uri: str, problem: str, loads: str) -> None:
    """Compute a plan in this process: minimize the load of the busiest broker, with few moves."""
    started = time.monotonic()

    def tell(line: str) -> None:
        click.echo(f"{time.monotonic() - started:6.1f} s  {line}", err=True)

    try:
        with native_output_on_stderr():
            computed = compute_plan(uri, problem, loads, tell)
            folder = write_plan(uri, computed)
    except BellwetherError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    before, after, gap = computed.plan.before, computed.plan.after, computed.plan.gap
    tell(
        f"busiest broker: {before.max:,.0f} before, {after.max:,.0f} bytes/s after, at most"
        f" {'?' if gap is None else format(gap, '.3%')} above the best possible; {folder}"
    )
    click.echo(computed.plan.digest)


@contextlib.contextmanager
def native_output_on_stderr() -> Iterator[None]:
    """What libraries in C print, as HiGHS now and then does, must not follow the digest on stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
