"""Loads in a store: a statistic of all partitions, and their rates by hour of the week, of ``loads/<name>``.

Which hours the lists have is in the metadata of each file. Written by the loads job; read by planner and verifier.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.plan.forecast import WEEK
from bellwether_load.plan.partition_rows import Ints, Rows, read_rows
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import ahead, batches, table_of_batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import KEY_FIELDS
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from bellwether_load.verify.hour_sums import HourBlock

ACCOUNT = "_loads.json"
"""The inputs of loads and their format; written last, so loads that have it are complete."""
FORMAT = 2

_BATCH_ROWS = 4_096
"""With 168 hours that is 11 MB."""
RATES = ("produce", "consume")
_KEY = b"bellwether.hours"
_LIST = pa.list_(pa.int64())
REQUESTS = pa.field("request_hours", _LIST)
"""Hundredths of a request/s."""
LISTS = (pa.field("produce_hours", _LIST, nullable=False), pa.field("consume_hours", _LIST), REQUESTS)


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


def load_table(store: Store, files: Sequence[str], statistic: str) -> pa.Table:
    """Topic, topic id and partition of all loads, and one statistic (``Median``, ``P95``, ``Peak``) as ``produce`` and
    ``consume``, in the order of the files. Raises StoreError."""
    rates = [pa.field(f"{what}_{statistic.lower()}", pa.float64()) for what in RATES]
    schema = pa.schema([*KEY_FIELDS, *rates])
    found = table_of_batches((batch for path in files for batch in batches(store, path, schema)), schema)
    return found.rename_columns([*(field.name for field in KEY_FIELDS), *RATES])


def with_loads(loads: Store, partitions: pa.Table, terms: ProblemHeader) -> Rows:
    """The partitions of a problem with the loads of this folder. Raises StoreError; StoreDamaged names the first that
    makes no sense."""
    try:
        return read_rows(terms, partitions, load_table(loads, load_files(loads), terms.objective.statistic))
    except InvalidDocument as error:
        raise StoreDamaged(f"{loads}: {error}") from None


def hour_blocks(store: Store, files: Sequence[str], hours: int, *, requests: bool) -> Iterator[HourBlock]:
    """The rates of the same rows by hour, some thousands at a time; those of requests only if asked for."""
    schema = pa.schema(LISTS if requests else LISTS[:2])
    for path in files:
        for batch in ahead(batches(store, path, schema, _BATCH_ROWS)):
            produce, consume, *asked = (_matrix(column, hours) for column in batch.columns)
            known = batch.column(2).is_valid().to_numpy(zero_copy_only=False) if asked else None
            yield produce, consume, asked[0] if asked else None, known


def _matrix(lists: Any, hours: int) -> Ints:
    """A row for each list; 0 for null. A list of another length becomes -1."""
    there = lists.is_valid().to_numpy(zero_copy_only=False)
    fit = there & (np.nan_to_num(lists.value_lengths().to_numpy(zero_copy_only=False)) == hours)
    found = np.where(there & ~fit, -1, 0)[:, None].repeat(hours, axis=1)
    found[fit] = lists.filter(pa.array(fit)).flatten().to_numpy(zero_copy_only=False).reshape(-1, hours)
    return found


def _hours(store: Store, path: str) -> tuple[int, ...]:
    with store.parquet(path) as file:
        said = (file.schema_arrow.metadata or {}).get(_KEY, b"").decode("ascii", "replace")
    hours = tuple(int(hour) if hour.isdecimal() and len(hour) < 4 else WEEK for hour in said.split(",") if said)
    if any(hour >= WEEK for hour in hours) or list(hours) != sorted(set(hours)):
        where = store.where(path)
        raise StoreDamaged(f"{where}: bellwether.hours is {said[:60]!r}: expected numbers from 0 to 167, ascending")
    return hours
