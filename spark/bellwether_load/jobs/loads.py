"""``loads``: compute the load of each partition from the sampler's history. Prints the folder in the store.

Exit status: 0: finished; 1: failed; 2: wrong arguments; 3: no usable samples, the loads are written and empty.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether_load.engines.frames import Engine
from bellwether_load.histories.hours import LEAST_SECONDS, WEEK, of_masks
from bellwether_load.histories.rules import Rules
from bellwether_load.jobs.engine_options import engine_options, opened
from bellwether_load.jobs.load_writer import write_loads
from bellwether_load.jobs.sample_reader import portions, stretches
from bellwether_load.jobs.sample_selection import USUAL_DAYS, Choice, Period, choose, moment
from bellwether_load.store.filesystems import Store
from bellwether_load.transforms.loads import loads as with_load
from bellwether_load.transforms.loads import measured, summary

NOTHING = 3
# Slowly growing counters: a third of the size of lz4 on local disks, at hardly more CPU.
SETTINGS = {"spark.io.compression.codec": "zstd"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

Tell = Callable[[str], None]


class Moment(click.ParamType[date]):
    """A day or a moment in ISO 8601."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date | datetime:
        """Parse the value; a usage error if it is none."""
        try:
            return value if isinstance(value, date) else moment(value)
        except ValueError:
            self.fail(f"{value!r} is not a day or time: use 2026-11-21, or 2026-11-21T12:00:00 (UTC)", param, ctx)


@click.command()
@click.option("--store", "uri", required=True, metavar="URI", help="Store of samples and loads.")
@click.option("--name", required=True, metavar="NAME", help="Name of the loads; they are written to loads/NAME.")
@click.option("--from", "start", type=Moment(), help="First day, or start time (UTC).")
@click.option("--to", "end", type=Moment(), help="Last day, or end time (UTC).")
@click.option("--days", "count", type=int, help=f"Number of days, ending with the newest.  [default: {USUAL_DAYS}]")
@click.option("--cluster", "cluster_id", metavar="ID", help="Id of the Kafka cluster, if the store has several.")
@click.option(
    "--shortest-seconds",
    "shortest",
    type=click.IntRange(1),
    default=Rules().shortest,
    show_default=True,
    help="Minimum interval between two samples of a partition, in seconds; closer samples are ignored.",
)
@click.option(
    "--longest-seconds",
    "longest",
    type=click.IntRange(1),
    default=Rules().longest,
    show_default=True,
    help="Maximum interval between two samples, in seconds; longer intervals are ignored.",
)
@click.option(
    "--peak-seconds",
    "peak",
    type=click.IntRange(1),
    default=Rules().peak,
    show_default=True,
    help="Duration of a peak, in seconds: the peak is the rate that was reached for this long in a day.",
)
@engine_options
def loads(
    uri: str,
    name: str,
    start: date | datetime | None,
    end: date | datetime | None,
    count: int | None,
    cluster_id: str | None,
    shortest: int,
    longest: int,
    peak: int,
    kind: str,
    master: str | None,
    memory: str | None,
) -> None:
    """Compute the load of each partition (bytes in, bytes out, messages) from the sampler's history."""
    began = time.monotonic()

    def tell(line: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {line}", err=True)

    try:
        rules = _rules(shortest, longest, peak)
        if not _NAME.fullmatch(name):
            raise Terminal(
                f"--name {name!r}: use letters, digits, dots, dashes and underscores, first a letter or digit"
            )
        # Executors may run in another directory.
        uri = uri if ":" in uri else str(Path(uri).absolute())
        store = Store.open(uri)
        store.require()
        choice = choose(store, Period(start, end, count), SystemClock().now().date(), cluster_id)
        _tell_choice(choice, tell)
        if not choice.sources:
            folder, found = write_loads(uri, name, None, 0, (), _account(choice, rules, {}, (), ())), 0
        else:
            with opened(kind, "loads", master, memory, SETTINGS, tell) as engine:
                folder, found = run(engine, uri, name, choice, rules, tell)
    except BellwetherError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    click.echo(folder)
    if not found:
        why = f"a partition needs two samples, {shortest} to {longest} s apart, and a log that grew"
        click.echo(f"{folder} is empty: this period has no usable samples ({why})", err=True)
        sys.exit(NOTHING)


def run(engine: Engine, uri: str, name: str, choice: Choice, rules: Rules, tell: Tell) -> tuple[str, int]:
    """Compute and write the loads; returns their folder and their number. Raises StoreError."""
    rows = sum(source.rows for source in choice.sources)
    packed, unreadable = stretches(engine, uri, portions(choice.sources), choice.window)
    found = measured(packed, rows, rules).kept()
    sums = asdict(summary(found))
    for line in sorted(unreadable.found()):
        tell(f"skipped: {line}")
    tell(
        f"{sums['samples']:,} samples of {sums['partitions']:,} partitions; {sums['loads']:,} have a load,"
        f" {sums['too_few_samples']:,} too few samples, {sums['without_sizes']:,} messages but no size that grew"
    )
    if sums["refused"]:
        tell(f"{sums['refused']:,} samples had an invalid number, which is treated as unknown")
    hours = of_masks(sums.pop("days"))
    tell(covered(hours))
    account = _account(choice, rules, sums, unreadable.found(), hours)
    folder = write_loads(uri, name, with_load(found), sums["loads"], hours, account)
    found.drop()
    tell(f"written: {folder}")
    return folder, sums["loads"]


def covered(hours: Sequence[int]) -> str:
    """What it means that the history knows these hours of the week."""
    least = LEAST_SECONDS // 60
    if not hours:
        return f"no hour of the week has {least} minutes of samples: plans cannot name the busiest hour of a broker"
    said = f"{len(hours)} of {WEEK} hours of the week are known, each by at least {least} minutes of samples"
    return said if len(hours) == WEEK else f"{said}; plans say nothing about the others"


def _rules(shortest: int, longest: int, peak: int) -> Rules:
    try:
        return Rules(shortest, longest, peak)
    except ValueError as error:
        raise Terminal(str(error)) from None


def _tell_choice(choice: Choice, tell: Tell) -> None:
    for line in choice.skipped:
        tell(f"skipped: {line}")
    if choice.missing:
        tell(f"no samples of {', '.join(day.isoformat() for day in choice.missing)}")
    rows = sum(source.rows for source in choice.sources)
    there = len(choice.days) - len(choice.missing)
    tell(f"{rows:,} samples in {len(choice.sources):,} files, from {there} of {len(choice.days)} days")


def _written(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _account(
    choice: Choice, rules: Rules, sums: dict[str, Any], unreadable: Any, hours: Sequence[int]
) -> dict[str, Any]:
    """Description of the loads' inputs; identical for identical samples."""
    span = choice.span()
    return {
        "format": 1,
        "clusterId": choice.cluster_id,
        "from": _written(choice.window.start),
        "to": _written(choice.window.end),
        "since": _written(span[0]) if span else None,
        "until": _written(span[1]) if span else None,
        "missingDays": [day.isoformat() for day in choice.missing],
        "files": len(choice.sources),
        "skipped": sorted({*choice.skipped, *unreadable}),
        "rules": asdict(rules),
        **{key: sums.get(key, 0) for key in ("samples", "refused", "partitions", "loads")},
        "tooFewSamples": sums.get("too_few_samples", 0),
        "logBytes": sums.get("log_bytes", 0),
        "logBytesWithoutLoad": sums.get("log_bytes_without_load", 0),
        "withoutSizes": sums.get("without_sizes", 0),
        "hours": len(hours),
    }
