"""What sampling costs at 200,000 partitions: seconds for a round, and memory that does not grow with what is merged."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether_load.sampling.rounds import Rounds
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import SampleWriter
from testkit.kafka.sampled_cluster import Site, partition
from testkit.loads.sample_rounds import CLUSTER, MIDNIGHT

pytestmark = pytest.mark.slow

PARTITIONS = 200_000
# A round is decoded, put into rows and encoded by one thread; the time of brokers and of the network comes on top.
ROUND_SECONDS = 15.0
ROLL = """
import sys
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples.sample_files import list_rounds
due = max(due_hours(Store.open(sys.argv[1]), list_rounds(Store.open(sys.argv[1]))), key=lambda due: len(due.files))
done = roll_hour(sys.argv[1], due)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss has the parent's, too
print(done.rows, done.bytes, int(peak.split()[1]) // 1024)
"""


def test_a_round_over_two_hundred_thousand_partitions_costs_seconds(tmp_path: Path) -> None:
    site = Site(tuple(partition(f"t-{n // 50:05}", n % 50, n % 3 + 1) for n in range(PARTITIONS)))
    site.ends = {p.name: 10**9 + number for number, p in enumerate(site.partitions)}
    site.sizes = {p.name: 10**12 + number for number, p in enumerate(site.partitions)}
    rounds = Rounds(site.sources(), SystemClock(), timeout_seconds=5, period_seconds=60)
    writer = SampleWriter(Store.open(str(tmp_path)))
    began = time.process_time()
    found = rounds.take(datetime.fromtimestamp(int(time.time()), UTC))
    size = writer.write(found.rows)
    rounds.close()
    assert time.process_time() - began < ROUND_SECONDS
    assert (len(found.rows), found.troubles) == (PARTITIONS, {})
    assert size < 20 * PARTITIONS


ROUNDS = range(-20, 70)
"""Minutes from the start of an hour, of all rounds that decide on it."""


def sample_an_hour(directory: Path, partitions: int) -> None:
    store, chance = Store.open(str(directory)), np.random.default_rng(1)
    rates, ends = np.exp(chance.normal(5, 2, partitions)), chance.integers(0, 10**9, partitions)
    names = pa.array([f"topic-{n // 50:05}" for n in range(partitions)]).dictionary_encode()
    ids = pa.array([f"{n // 50:022}" for n in range(partitions)]).dictionary_encode()
    numbers = pa.array(np.arange(partitions) % 50, pa.int32())
    for minute in ROUNDS:
        at = MIDNIGHT + timedelta(minutes=minute)
        ends = ends + chance.poisson(rates)
        columns = [
            pa.repeat(pa.scalar(int(at.timestamp()), pa.timestamp("s", tz="UTC")), partitions),
            *(names, ids, numbers),
            *(pa.repeat(pa.scalar(3, pa.int32()), partitions),) * 2,
            *(pa.array(ends), pa.array(ends * 700), *(pa.nulls(partitions, pa.float32()),) * 2),
        ]
        sample_files.write_table(store, CLUSTER, at, pa.Table.from_arrays(columns, schema=sample_files.SCHEMA))


def test_eight_times_the_partitions_are_rolled_up_in_hardly_more_memory(tmp_path: Path) -> None:
    peaks = {}
    for partitions in (PARTITIONS // 8, PARTITIONS):
        directory = tmp_path / str(partitions)
        sample_an_hour(directory, partitions)
        said = subprocess.run([sys.executable, "-c", ROLL, str(directory)], capture_output=True, text=True, check=True)
        count, size, peaks[partitions] = map(int, said.stdout.split())
        assert count == partitions
        assert size <= 60 * count
    small, large = peaks.values()
    assert large < 1.5 * small, peaks
    assert large < 550, peaks
