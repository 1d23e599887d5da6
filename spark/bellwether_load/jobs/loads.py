"""``loads``: roll up what was sampled, and compute the load of each partition. Prints the folder in the store.

Exit status: 0: finished; 1: failed; 2: wrong arguments; 3: no usable samples, the loads are written and empty.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether_load.histories.loads import LEAST_SECONDS, WEEK
from bellwether_load.histories.rollups import LONGEST, SHORTEST
from bellwether_load.jobs.engines import Engine, engine_options, opened
from bellwether_load.jobs.load_parts import FOLDER, RANGE, Counts, PartTask, hour_of_week, part_path, write_part
from bellwether_load.store.filesystems import Store
from bellwether_load.store.key_ranges import KeyRange, key_ranges
from bellwether_load.store.plans.load_hours import ACCOUNT, write_account
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import About, RollupFile, list_rollups, read_about
from bellwether_load.store.samples.sample_files import AHEAD, Listing, list_rounds
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

NOTHING = 3
DAYS = 14
NO_SAMPLES = (
    f"this period has no usable samples (a partition needs two samples, {SHORTEST} to {LONGEST} s apart, and a log that"
    " grew)"
)
NEARLY_ALL_PERCENT = 95
"""Of the bytes: a new topic of a few bytes does not make the evidence that of an hour."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rollups of a period, in order of time, with what they say of themselves."""

    cluster_id: str
    first: date
    last: date
    files: tuple[tuple[RollupFile, About], ...]
    skipped: tuple[str, ...]

    @property
    def hours(self) -> list[int]:
        """The hours of the week of which a partition has ``LEAST_SECONDS`` of samples."""
        covered = [0] * WEEK
        for file, about in self.files:
            covered[hour_of_week(file.hour)] += about.covered
        return [hour for hour, seconds in enumerate(covered) if seconds >= LEAST_SECONDS]


@click.command()
@click.option("--store", "uri", required=True, metavar="URI", help="Store of samples and loads.")
@click.option("--name", required=True, metavar="NAME", help="Name of the loads; they are written to loads/NAME.")
@click.option(
    "--days",
    type=click.IntRange(1),
    default=DAYS,
    show_default=True,
    help="Number of days (UTC), ending with the newest that has samples.",
)
@click.option("--cluster", "cluster_id", metavar="ID", help="Id of the Kafka cluster, if the store has several.")
@engine_options
def loads(
    uri: str, name: str, days: int, cluster_id: str | None, kind: str, master: str | None, memory: str | None
) -> None:
    """Compute the load of each partition (bytes in, bytes out) from the sampler's history."""
    began = time.monotonic()

    def tell(line: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {line}", err=True)

    try:
        if not _NAME.fullmatch(name):
            raise Terminal(
                f"--name {name!r}: use letters, digits, dots, dashes and underscores, first a letter or digit"
            )
        # Executors may run in another directory.
        uri = uri if ":" in uri else str(Path(uri).absolute())
        store = Store.open(uri)
        store.require()
        with opened(kind, "loads", master, memory, tell) as engine:
            counts = run(engine, uri, name, days, SystemClock().now(), tell, cluster_id)
    except BellwetherError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    click.echo(f"{FOLDER}/{name}")
    if not counts.loads:
        click.echo(f"{FOLDER}/{name} is empty: {NO_SAMPLES}", err=True)
        sys.exit(NOTHING)


def run(
    engine: Engine, uri: str, name: str, days: int, now: datetime, tell: Tell, cluster_id: str | None = None
) -> Counts:
    """Roll up what is due, compute the loads of the newest ``days`` and write them. Raises StoreError and Terminal."""
    store = Store.open(uri)
    listing = list_rounds(store, now)
    cluster = _cluster(store, listing, cluster_id)
    skipped = _roll(engine, uri, listing, cluster, tell)
    chosen = _choose(store, days, now, cluster)
    chosen = replace(chosen, skipped=(*skipped, *chosen.skipped))
    for line in chosen.skipped:
        tell(f"skipped: {line}")
    tell(f"{len(chosen.files)} hours, from {chosen.first} to {chosen.last}")
    counts = _write(engine, uri, name, chosen)
    tell(
        f"{counts.samples:,} samples of {counts.partitions:,} partitions; {counts.loads:,} have a load,"
        f" {counts.too_few_samples:,} too few samples, {counts.without_sizes:,} messages but no size that grew"
    )
    tell(covered(chosen.hours))
    tell(f"written: {FOLDER}/{name}")
    return counts


def _cluster(store: Store, listing: Listing, wanted: str | None) -> str:
    if wanted is not None:
        return wanted
    found = {file.cluster_id: file.path for file in listing.rounds}
    found |= {file.cluster_id: file.path for file in list_rollups(store)}
    if len(found) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in sorted(found.items()))
        raise Terminal(f"{store}: has samples of several Kafka clusters: {named}. Select one with --cluster")
    return next(iter(found), "")


def _roll(engine: Engine, uri: str, listing: Listing, cluster: str, tell: Tell) -> list[str]:
    """Roll up what is due; what was left out, a line for each cause."""
    store = Store.open(uri)
    own = replace(listing, rounds=tuple(file for file in listing.rounds if file.cluster_id == cluster))
    due = due_hours(store, own)
    rolled = engine.run(partial(roll_hour, uri), due)
    if due:
        tell(f"{len(due)} hours rolled up, {sum(one.rows for one in rolled):,} rows")
    others = {file.cluster_id for file in listing.rounds} - {cluster}
    left_out = [
        (sorted({line for one in rolled for line in one.skipped}), ""),
        ([store.where(path) for path in listing.foreign], ": does not have the name of a sample file"),
        ([store.where(file.path) for file in listing.ahead], ": was sampled by a clock that was ahead"),
        ([store.where(path) for path in _first_of(listing, others)], f": is not of Kafka cluster {cluster}"),
    ]
    return [f"{lines[0]}{why}{_more(len(lines))}" for lines, why in left_out if lines]


def _first_of(listing: Listing, clusters: set[str]) -> list[str]:
    return [file.path for file in listing.rounds if file.cluster_id in clusters]


def _more(count: int) -> str:
    return f" ({count - 1:,} more files)" if count > 1 else ""


def _choose(store: Store, days: int, now: datetime, cluster: str) -> Chosen:
    """The rollups of a period. Raises StoreError: StoreNewer for one of a later release."""
    own = [file for file in list_rollups(store) if file.cluster_id == cluster]
    there = [file for file in own if file.hour <= now.timestamp() + AHEAD]
    last = _day(there[-1].hour) if there else now.date()
    first = last - timedelta(days=days - 1)
    if there:
        first = max(first, _day(there[0].hour))
    files, skipped = [], []
    for file in there:
        if first <= _day(file.hour) <= last:
            try:
                files.append((file, read_about(store, file)))
            except (StoreDamaged, StoreMissing) as error:
                skipped.append(str(error))
    if len(there) < len(own):
        skipped.append(
            f"{store.where(own[-1].path)}: is in the future, so a clock was ahead{_more(len(own) - len(there))}"
        )
    if len(skipped) > 1:
        skipped = [f"{skipped[0]}{_more(len(skipped))}"]
    return Chosen(cluster, first, last, tuple(files), tuple(skipped))


def _write(engine: Engine, uri: str, name: str, chosen: Chosen) -> Counts:
    """Replace the loads. ``_loads.json`` is removed first and written last: it completes them."""
    store = Store.open(uri)
    store.delete(f"{FOLDER}/{name}/{ACCOUNT}")
    files = tuple(file for file, _ in chosen.files)
    # The largest has the most partitions, so ranges of it are ranges of all.
    largest = max((file for file in files), key=lambda file: (file.size, file.hour), default=None)
    ranges = [KeyRange()] if largest is None else key_ranges(store, largest.path, RANGE)
    tasks = [PartTask(number, within) for number, within in enumerate(ranges)]
    counts = sum(engine.run(partial(write_part, uri, name, files, chosen.hours), tasks), Counts())
    written = {part_path(name, task.number) for task in tasks}
    for stored in store.list(f"{FOLDER}/{name}"):
        if stored.path not in written:
            store.delete(stored.path)
    write_account(store, f"{FOLDER}/{name}", _account(chosen, counts))
    return counts


def covered(hours: Sequence[int]) -> str:
    """What it means that the history knows these hours of the week."""
    least = LEAST_SECONDS // 60
    if not hours:
        return f"no hour of the week has {least} minutes of samples: plans cannot name the busiest hour of a broker"
    said = f"{len(hours)} of {WEEK} hours of the week are known, each by at least {least} minutes of samples"
    return said if len(hours) == WEEK else f"{said}; plans say nothing about the others"


def _account(chosen: Chosen, counts: Counts) -> dict[str, Any]:
    """Description of the loads' inputs; identical for identical samples."""
    since = [about.since for _, about in chosen.files if about.since]
    return {
        "clusterId": chosen.cluster_id,
        "from": chosen.first.isoformat(),
        "to": chosen.last.isoformat(),
        "since": _written(min(since, default=None)),
        "until": _written(max((about.until for _, about in chosen.files if about.until), default=None)),
        "rollups": len(chosen.files),
        "skipped": list(chosen.skipped),
        "samples": counts.samples,
        "partitions": counts.partitions,
        "loads": counts.loads,
        "tooFewSamples": counts.too_few_samples,
        "withoutSizes": counts.without_sizes,
        "logBytes": counts.log_bytes,
        "logBytesWithoutLoad": counts.log_bytes_without_load,
        "hours": _measured_hours(counts),
    }


def _measured_hours(counts: Counts) -> int:
    """So many hours of the week are known of the partitions with nearly all bytes, whichever ones of each."""
    least = sum(counts.by_hours) * NEARLY_ALL_PERCENT
    at_least = ((hours, sum(counts.by_hours[hours:])) for hours in range(WEEK, 0, -1))
    return next((hours for hours, weight in at_least if 0 < least <= weight * 100), 0)


def _written(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _day(hour: int) -> date:
    return datetime.fromtimestamp(hour, UTC).date()
