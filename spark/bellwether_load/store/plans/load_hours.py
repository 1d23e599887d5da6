"""Loads in a store, row by row: a statistic, and rates by hour of the week, of ``loads/<name>``, one file at a time.

Which hours the lists have is in the metadata of each file. Written by the loads job; read by it and by the verifier.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa

from bellwether_load.plan.forecast import WEEK
from bellwether_load.store.columns import ahead, batches, values
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import KEY_FIELDS
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from bellwether_load.verify.load_rows import LoadRow

ACCOUNT = "_loads.json"
"""The inputs of loads and their format; written last, so loads that have it are complete."""
FORMAT = 2

_BATCH_ROWS = 4_096
"""With 168 hours that is 11 MB."""
_KEY = b"bellwether.hours"
_RATES = pa.list_(pa.int64())
REQUESTS = pa.field("request_hours", _RATES)
"""Hundredths of a request/s."""
LISTS = (pa.field("produce_hours", _RATES, nullable=False), pa.field("consume_hours", _RATES), REQUESTS)


def of_hours(hours: Sequence[int]) -> dict[bytes, bytes]:
    """The metadata of a file whose lists have these hours of the week."""
    return {_KEY: ",".join(map(str, hours)).encode()}


def write_account(store: Store, folder: str, account: Mapping[str, Any]) -> None:
    """Write what loads were made from; the last step, which completes them."""
    store.write_bytes(f"{folder}/{ACCOUNT}", json.dumps({"format": FORMAT, **account}, indent=1).encode())


def read_account(store: Store) -> Mapping[str, Any]:
    """What the loads in this folder rest on. Raises StoreError; StoreDamaged if they are not complete."""
    try:
        account = json.loads(store.read_bytes(ACCOUNT))
    except StoreMissing:
        said = f"{store}: has no {ACCOUNT}, so these loads are not complete: run the loads job again"
        raise StoreDamaged(said) from None
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(f"{store.where(ACCOUNT)}: {error}") from None
    if not isinstance(account, dict):
        raise StoreDamaged(f"{store.where(ACCOUNT)}: expected a JSON object")
    if (found := account.get("format")) != FORMAT or isinstance(found, bool):
        remedy = "upgrade Bellwether, or run the loads job of this version"
        raise StoreDamaged(f"{store.where(ACCOUNT)}: format is {found!r}: this version reads format {FORMAT}: {remedy}")
    return account


def load_files(store: Store) -> list[str]:
    """The files of loads, in the order of their names. Raises StoreMissing; StoreDamaged if they are not complete."""
    files = sorted(f.path for f in store.list() if f.path.endswith(".parquet"))
    if not files:
        raise StoreMissing(f"{store}: contains no Parquet files: set the folder that the loads job has written")
    read_account(store)
    return files


def known_hours(store: Store, files: Sequence[str]) -> tuple[int, ...]:
    """The hours of the week that the files of loads have; none if they have no lists. StoreDamaged if they differ."""
    found = {path: _hours(store, path) for path in files}
    if len(set(found.values())) > 1:
        raise StoreDamaged(f"{store}: its files have different hours of the week: run the loads job again")
    return next(iter(found.values()), ())


def load_rows(store: Store, files: Sequence[str], statistic: str, hours: Sequence[int] = ()) -> Iterator[LoadRow]:
    """One statistic (``Median``, ``P95``, ``Peak``) of every partition with loads, and its rates in ``hours`` if these
    are known, in the order of the files. Raises StoreError."""
    measured = [pa.field(f"{what}_{statistic.lower()}", pa.float64()) for what in ("produce", "consume")]
    schema = pa.schema([*KEY_FIELDS, *measured, *(LISTS if hours else ())])
    for path in files:
        for batch in ahead(batches(store, path, schema, _BATCH_ROWS)):
            columns, lists = batch.columns[: -len(LISTS)] if hours else batch.columns, batch.columns[-len(LISTS) :]
            lists = lists if hours else [None] * len(LISTS)
            yield from zip(*map(values, columns), *map(_lists, lists))  # noqa: B905 - lists may be endless


def _hours(store: Store, path: str) -> tuple[int, ...]:
    with store.parquet(path) as file:
        said = (file.schema_arrow.metadata or {}).get(_KEY, b"").decode("ascii", "replace")
    hours = tuple(int(hour) if hour.isdecimal() and len(hour) < 4 else WEEK for hour in said.split(",") if said)
    if any(hour >= WEEK for hour in hours) or list(hours) != sorted(set(hours)):
        where = store.where(path)
        raise StoreDamaged(f"{where}: bellwether.hours is {said[:60]!r}: expected numbers from 0 to 167, ascending")
    return hours


def _lists(array: Any) -> Iterator[memoryview | None]:
    """The numbers of each list, as they are in memory; None for null, and for ever without lists."""
    if array is None:
        yield from repeat(None)
    flat = memoryview(array.values.to_numpy())
    for known, (first, last) in zip(array.is_valid().to_pylist(), pairwise(values(array.offsets)), strict=True):
        yield flat[first:last] if known else None
