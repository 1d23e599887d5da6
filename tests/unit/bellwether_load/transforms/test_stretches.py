from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bellwether_load.histories.samples import UNKNOWN, Samples
from bellwether_load.store.samples.sample_files import SCHEMA as FORMAT
from bellwether_load.transforms.stretches import NoSamples, pack, unpack

Row = tuple[str, str, int, int, int, int, int | None, int | None, float | None]
"""Topic, topic id, partition, at, leader, epoch, end, size, consume."""

ROWS: list[Row] = [
    ("a", "ida", 0, 100, 1, 5, 10, 1000, 1.5),
    ("a", "ida", 0, 160, 1, 5, 20, 2000, None),
    ("a", "ida", 0, 220, 2, 6, None, None, None),
    ("a", "ida", 1, 100, -1, -1, None, None, None),
    ("b", "idb", 0, 100, 3, 1, 2**40, 2**50, None),
    ("b", "idb", 0, 160, 3, 1, 2**40, 0, None),
]


def table(rows: list[Row]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * 9
    topic, topic_id, partition, at, leader, epoch, end, size, consume = columns
    arrays = [at, topic, topic_id, partition, leader, epoch, end, size, consume]
    plain = [
        pa.array(list(a), t.type if i not in (1, 2) else pa.string())
        for i, (a, t) in enumerate(zip(arrays, FORMAT, strict=True))
    ]
    return pa.Table.from_arrays(plain, names=FORMAT.names).cast(FORMAT)


def rows_of(keys: Any, samples: Samples) -> list[Row]:
    """What was unpacked, as rows again."""
    owner = samples.owner.tolist()
    names = keys.to_pylist()
    found: list[Row] = []
    for i, number in enumerate(owner):
        key = names[number]
        end, size, consume = samples.end[i], samples.size[i], float(samples.consume[i])
        found.append(
            (
                key["topic"],
                key["topic_id"],
                key["partition"],
                int(samples.at[i]),
                int(samples.leader[i]),
                int(samples.epoch[i]),
                None if end == UNKNOWN else int(end),
                None if size == UNKNOWN else int(size),
                None if math.isnan(consume) else consume,
            )
        )
    return found


def packed_and_unpacked(*tables: list[Row], sort: bool = False) -> list[Row]:
    """Partitions in the order of their names; the samples of each as they came."""
    return sorted(rows_of(*unpack([pack(table(rows), sort=sort) for rows in tables])), key=lambda row: row[:3])


def test_what_was_packed_is_unpacked_as_it_was():
    assert packed_and_unpacked(ROWS) == ROWS


def test_adjacent_rows_of_a_partition_form_one_stretch():
    batch = pack(table(ROWS), sort=False)
    assert batch.column("topic").to_pylist() == ["a", "a", "b"]
    assert batch.column("topic_id").to_pylist() == ["ida", "ida", "idb"]
    assert batch.column("partition").to_pylist() == [0, 1, 0]


def test_stretches_of_one_partition_from_several_reads_come_together():
    assert packed_and_unpacked(ROWS[:2], ROWS[4:5], ROWS[2:4], ROWS[5:]) == ROWS


def test_rows_that_are_mixed_up_are_sorted_where_that_is_asked():
    mixed = [ROWS[i] for i in (4, 0, 3, 5, 1, 2)]
    assert pack(table(mixed), sort=True).num_rows == 3
    assert packed_and_unpacked(mixed, sort=True) == ROWS
    assert packed_and_unpacked(mixed) == ROWS


def test_a_topic_that_was_made_again_is_another_one():
    again = [("a", "new", *row[2:]) for row in ROWS[:2]]
    found = packed_and_unpacked([*ROWS[:2], *again])
    assert [row[:2] for row in found] == [("a", "ida"), ("a", "ida"), ("a", "new"), ("a", "new")]


def test_a_constant_column_is_stored_once():
    batch = pack(table(ROWS), sort=False)
    assert [len(value) // 4 for value in batch.column("leader").to_pylist()] == [3, 1, 1]
    assert [len(value) // 4 for value in batch.column("epoch").to_pylist()] == [3, 1, 1]
    assert [len(value) // 4 for value in batch.column("consume").to_pylist()] == [3, 0, 0]
    assert [len(value) // 8 for value in batch.column("end").to_pylist()] == [3, 1, 2]


@pytest.mark.parametrize(
    "nonsense",
    [{"end": -1}, {"end": -(2**63)}, {"size": -7}, {"consume": math.nan}, {"consume": math.inf}, {"consume": -1.0}],
)
def test_a_number_that_no_broker_gives_is_unknown_and_counted(nonsense: dict[str, Any]):
    columns = ["topic", "topic_id", "partition", "at", "leader", "epoch", "end", "size", "consume"]
    bad = tuple({**dict(zip(columns, ROWS[1], strict=True)), **nonsense}.values())
    keys, samples = unpack([pack(table([ROWS[0], bad, ROWS[4]]), sort=False)])  # type: ignore[list-item]
    assert keys.column("refused").to_pylist() == [1, 0]
    (name,) = nonsense
    assert rows_of(keys, samples)[1][columns.index(name)] is None


def test_missing_values_do_not_count_as_refused():
    keys, _ = unpack([pack(table(ROWS), sort=False)])
    assert keys.column("refused").to_pylist() == [0, 0, 0]


def test_refused_numbers_of_all_stretches_are_added():
    bad = [(*row[:6], -5, *row[7:]) for row in ROWS]
    keys, _ = unpack([pack(table(bad[:1]), sort=False), pack(table(bad[1:]), sort=False)])
    assert keys.column("refused").to_pylist() == [3, 1, 2]


def test_a_negative_partition_is_no_sample():
    with pytest.raises(NoSamples, match="column partition holds negative numbers"):
        pack(table([(*ROWS[0][:2], -1, *ROWS[0][3:])]), sort=False)


@pytest.mark.parametrize("at", [-1, 2**32])
def test_a_moment_out_of_our_time_is_no_sample(at: int):
    with pytest.raises(NoSamples, match="column at holds moments before 1970 or after 2106"):
        pack(table([(*ROWS[0][:3], at, *ROWS[0][4:])]), sort=False)


def test_the_last_moment_of_our_time_is_kept():
    row = (*ROWS[0][:3], 2**32 - 1, *ROWS[0][4:])
    assert packed_and_unpacked([row]) == [row]


def test_no_rows_are_no_stretches():
    assert pack(table([]), sort=False).num_rows == 0


def test_tables_in_pieces_with_words_of_their_own_are_packed_as_one():
    pieces = pa.concat_tables([table(ROWS[3:]), table(ROWS[:3])])
    assert pieces.column("topic").num_chunks == 2
    assert rows_of(*unpack([pack(pieces, sort=True)])) == ROWS


def test_slices_of_batches_are_unpacked_like_whole_ones():
    # Spark passes on batches whose buffers hold more than their rows.
    batch = pack(table(ROWS), sort=False)
    assert rows_of(*unpack([batch.slice(1, 2)])) == ROWS[3:]
    assert rows_of(*unpack([batch.slice(1, 2), batch.slice(0, 1)])) == ROWS


@pytest.mark.parametrize("seed", range(10))
def test_any_cut_and_any_order_of_reads_give_the_same_samples(seed: int):
    draw = np.random.default_rng(seed)
    rows: list[Row] = []
    for topic in range(3):
        for partition in range(4):
            leader, epoch = 1, 1
            for minute in range(int(draw.integers(0, 30))):
                if draw.random() < 0.1:
                    leader, epoch = int(draw.integers(1, 4)), epoch + 1
                end = int(draw.integers(0, 2**60)) if draw.random() < 0.9 else None
                size = int(draw.integers(0, 2**60)) if draw.random() < 0.9 else None
                consume = float(np.float32(draw.random())) if draw.random() < 0.3 else None
                rows.append((f"t{topic}", f"id{topic}", partition, 60 * minute, leader, epoch, end, size, consume))
    cuts = sorted(draw.integers(0, len(rows) + 1, 5).tolist())
    pieces = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    found = packed_and_unpacked(*[pieces[i] for i in draw.permutation(len(pieces)) if pieces[i]])
    assert sorted(found, key=lambda row: row[:4]) == rows
