from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.store import filesystems
from bellwether_load.store.columns import batches, checked, rows, table_of, values
from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreDamaged

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("count", pa.int32(), nullable=False)])


@given(st.lists(st.integers(-(2**31), 2**31 - 1)), st.integers(0, 3))
def test_integers_are_those_of_the_column_wherever_it_begins(numbers: list[int], skip: int) -> None:
    for kind in (pa.int32(), pa.int64()):
        assert values(pa.array(numbers, kind).slice(skip)) == numbers[skip:]


@given(st.lists(st.none() | st.floats(allow_nan=False)), st.integers(0, 3))
def test_floats_keep_what_is_null(numbers: list[float | None], skip: int) -> None:
    assert values(pa.array(numbers, pa.float64()).slice(skip)) == numbers[skip:]


@given(st.lists(st.text()), st.integers(0, 3))
def test_texts_are_those_of_the_column(words: list[str], skip: int) -> None:
    assert values(pa.array(words, pa.string()).slice(skip)) == words[skip:]


@given(st.lists(st.lists(st.integers(0, 9)).map(tuple)), st.integers(0, 3))
def test_lists_become_tuples(rows: list[tuple[int, ...]], skip: int) -> None:
    assert values(pa.array(rows, pa.list_(pa.int32())).slice(skip)) == rows[skip:]


def test_rows_become_a_table_of_the_schema() -> None:
    assert table_of([("a", 1), ("b", 2)], SCHEMA).to_pydict() == {"name": ["a", "b"], "count": [1, 2]}
    assert table_of([], SCHEMA).schema == SCHEMA


def test_other_widths_and_dictionaries_are_brought_into_the_schemas_types() -> None:
    given_ = pa.record_batch({"count": pa.array([1], pa.int64()), "name": pa.array(["a"]).dictionary_encode()})
    assert checked(given_, SCHEMA, "here").to_pydict() == {"name": ["a"], "count": [1]}


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (pa.array([2**40]), "column count has the type int64 instead of int32"),
        (pa.array(["x"]), "column count has the type string instead of int32"),
        (pa.array([None], pa.int32()), "column count contains nulls"),
        (pa.array([1.5]), "column count has the type double instead of int32"),
    ],
)
def test_a_column_that_cannot_be_had_so_is_named(count: pa.Array, said: str) -> None:
    with pytest.raises(StoreDamaged, match=said):
        checked(pa.record_batch({"name": pa.array(["a"]), "count": count}), SCHEMA, "here")


def test_a_null_inside_a_list_is_named() -> None:
    schema = pa.schema([pa.field("replicas", pa.list_(pa.int32()), nullable=False)])
    with pytest.raises(StoreDamaged, match="column replicas contains nulls"):
        checked(pa.record_batch({"replicas": pa.array([[1, None]], pa.list_(pa.int32()))}), schema, "here")


def test_a_file_is_read_batch_by_batch_and_only_the_columns_asked_for(tmp_path: Path) -> None:
    many = 150_000
    table = pa.table({"count": pa.array(range(many), pa.int32()), "name": ["n"] * many, "more": [None] * many})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=100_000)
    found = list(batches(Store.open(str(tmp_path)), "f.parquet", SCHEMA))
    assert len(found) > 1
    assert [n for b in found for _, n in rows(b)] == list(range(many))
    assert {tuple(b.schema.names) for b in found} == {("name", "count")}


def test_a_missing_column_is_named_with_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "f.parquet")
    with pytest.raises(StoreDamaged, match=r"f\.parquet: has no column count"):
        list(batches(Store.open(str(tmp_path)), "f.parquet", SCHEMA))


def test_long_word_of_every_row_is_held_once(tmp_path: Path) -> None:
    store, rows_of_a_word = Store.open(str(tmp_path)), 16_384
    words = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0), rows_of_a_word), pa.array(["x" * 16_384]))
    table = pa.table({"name": words, "count": pa.repeat(pa.scalar(1, pa.int32()), rows_of_a_word)})
    size = store.write_table("bomb.parquet", table, rows_of_a_word, compression="zstd", store_schema=False)
    before = pa.total_allocated_bytes()
    (batch,) = batches(store, "bomb.parquet", SCHEMA)
    assert size < 8192
    assert pa.total_allocated_bytes() - before < 2 << 20  # 256 MiB, were each row's word held
    assert len(values(batch.column("name"))) == rows_of_a_word


@pytest.mark.parametrize(
    ("limit", "table", "said"),
    [
        ("MOST_ROWS", pa.table({"a": [1, 2, 3, 4, 5]}), "has 5 rows; at most 4 are read"),
        ("LARGEST_CHUNK", pa.table({"a": [1]}), "column a has [0-9]+ bytes uncompressed in a row group; at most 4 are"),
        ("LARGEST_TEXTS", pa.table({"a": ["b"]}), "column a has [0-9]+ bytes uncompressed in a row group; at most 4"),
        ("VALUES_OF_A_ROW", pa.table({"a": [[1] * 9]}), "column a.list.element has 9 values in 1 rows"),
    ],
)
def test_file_that_unpacks_to_too_much_is_refused_by_its_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, table: pa.Table, said: str
) -> None:
    store = Store.open(str(tmp_path))
    store.write_table("bomb.parquet", table)
    monkeypatch.setattr(filesystems, limit, 4)
    monkeypatch.setattr(filesystems.pq, "ParquetFile", None)  # nothing of it is read
    with pytest.raises(StoreDamaged, match=f"bomb.parquet: {said}"), store.parquet("bomb.parquet"):
        pass
