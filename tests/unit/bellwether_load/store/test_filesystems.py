import os
import stat

import pyarrow as pa
import pytest

from bellwether.ports.errors import Terminal, Transient
from bellwether_load.store import filesystems
from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing, StoreUnavailable, StoreUnusable
from testkit.loads.crashing_store import Killed, mortal
from testkit.loads.sample_rounds import read_table

TABLE = pa.table({"partition": pa.array([1, 2, 3], pa.int32())})


def test_what_was_written_is_read_again(tmp_path):
    store = Store.open(str(tmp_path / "made" / "later"))
    store.write_bytes("a/b.json", b"{}")
    store.write_table("a/c.parquet", TABLE, compression="zstd")
    assert store.read_bytes("a/b.json") == b"{}"
    assert read_table(store, "a/c.parquet") == TABLE


def test_opening_a_store_makes_nothing(tmp_path):
    Store.open(str(tmp_path / "later"))
    assert not (tmp_path / "later").exists()


def test_a_file_uri_and_a_path_lead_to_the_same_place(tmp_path):
    Store.open(str(tmp_path)).write_bytes("x", b"1")
    assert Store.open(f"file://{tmp_path}").read_bytes("x") == b"1"


def test_a_relative_path_is_taken_from_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Store.open("here").write_bytes("x", b"1")
    assert (tmp_path / "here" / "x").read_bytes() == b"1"


def test_writing_again_replaces_the_whole(tmp_path):
    store = Store.open(str(tmp_path))
    store.write_bytes("x", b"a longer first version")
    store.write_bytes("x", b"short")
    assert store.read_bytes("x") == b"short"


def test_a_file_that_is_too_large_to_be_read_whole_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(filesystems, "SMALL_FILE_LIMIT", 3)
    store = Store.open(str(tmp_path))
    store.write_bytes("x", b"123")
    assert store.read_bytes("x") == b"123"
    store.write_bytes("x", b"1234")
    with pytest.raises(StoreDamaged, match=r"x: has more than 3 bytes"):
        store.read_bytes("x")


def test_a_write_that_fails_leaves_what_was_there_and_no_draft(tmp_path):
    Store.open(str(tmp_path)).write_bytes("x", b"first")
    with pytest.raises(Killed):
        mortal(tmp_path, 1, after=True).write_bytes("x", b"second")
    store = Store.open(str(tmp_path))
    assert store.read_bytes("x") == b"first"
    assert [found.path for found in store.list()] == ["x"]
    with pytest.raises(TypeError):
        store.write_bytes("x", None)
    assert store.read_bytes("x") == b"first"
    assert len(store.list(temporary=True)) == 1, "of the killed process alone"


def test_a_list_has_paths_in_order_with_sizes_and_times(tmp_path):
    store = Store.open(str(tmp_path))
    for path in ("s/b/2", "s/a/1", "t/3", "s/_hidden/4", "s/.x"):
        store.write_bytes(path, path.encode())
    found = store.list("s")
    assert [(file.path, file.size) for file in found] == [("s/a/1", 5), ("s/b/2", 5)]
    assert all(file.modified is not None and file.modified.tzinfo is not None for file in found)
    assert store.list("nowhere") == ()


def test_a_store_below_a_hidden_directory_lists_its_files(tmp_path):
    store = Store.open(str(tmp_path / ".cache" / "_store"))
    store.write_bytes("x", b"")
    assert [file.path for file in store.list()] == ["x"]


def test_deleting_what_is_not_there_is_no_error(tmp_path):
    store = Store.open(str(tmp_path))
    store.write_bytes("d/x", b"")
    store.delete("d/x")
    store.delete("d/x")
    assert not store.exists("d/x")
    store.write_bytes("d/y", b"")
    store.delete_directory("d")
    store.delete_directory("d")
    assert not store.exists("d")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "."])
def test_a_path_that_leads_out_of_the_store_is_refused(tmp_path, path):
    with pytest.raises(StoreUnusable, match="not a path inside a store"):
        Store.open(str(tmp_path)).write_bytes(path, b"")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StoreMissing, match=f"{tmp_path}/a/x: cannot be read: there is no such file"):
        Store.open(str(tmp_path)).read_bytes("a/x")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a Parquet file at all" * 9])
def test_a_file_that_is_no_parquet_is_named(tmp_path, content):
    store = Store.open(str(tmp_path))
    store.write_bytes("x.parquet", content)
    with pytest.raises(StoreDamaged, match=r"x\.parquet: is damaged.*Move it out"):
        read_table(store, "x.parquet")


@pytest.mark.parametrize("cut", [10, 100, -1, -9])
def test_a_truncated_table_is_damaged(tmp_path, cut):
    store = Store.open(str(tmp_path))
    store.write_table("x.parquet", TABLE)
    store.write_bytes("x.parquet", store.read_bytes("x.parquet")[:cut])
    with pytest.raises(StoreDamaged):
        read_table(store, "x.parquet")


def test_a_page_overwritten_in_the_middle_is_damaged(tmp_path):
    store = Store.open(str(tmp_path))
    store.write_table("x.parquet", TABLE, compression="zstd")
    whole = bytearray(store.read_bytes("x.parquet"))
    whole[4:40] = bytes(36)
    store.write_bytes("x.parquet", bytes(whole))
    with pytest.raises(StoreDamaged, match=r"x\.parquet: is damaged"):
        read_table(store, "x.parquet")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_names_the_remedy(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StoreUnusable, match=r"Permission denied\. Grant this user permission"):
        Store.open(str(tmp_path)).write_bytes("a/x", b"")
    tmp_path.chmod(stat.S_IRWXU)


def test_an_unwritable_place_is_refused_with_the_remedy():
    with pytest.raises(StoreUnusable, match=r"^/sys/kernel/x/x: cannot be written: .*\. Grant this user permission"):
        Store.open("/sys/kernel/x").write_bytes("x", b"")


def test_a_file_where_a_directory_is_needed_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    store = Store.open(str(tmp_path))
    for refused in (lambda: store.write_bytes("a/x", b""), lambda: store.read_bytes("a/x"), lambda: store.list("a")):
        with pytest.raises(StoreUnusable, match="A file is in the place of a directory"):
            refused()


@pytest.mark.parametrize("uri", ["", "  ", "ftp://host/path", "s3://", "s3:bucket", "gs:///", "nonsense:x"])
def test_a_uri_that_is_no_store_is_refused_with_a_remedy(uri):
    with pytest.raises(StoreUnusable, match=r"set a directory|add one"):
        Store.open(uri)


def test_no_secret_of_a_uri_is_ever_shown():
    with pytest.raises(StoreUnusable) as refusal:
        Store.open("ftp://anna:Very%2BSecret@host/path?token=Sesame")
    assert "ftp://host/path" in str(refusal.value)
    for secret in ("anna", "Very", "Secret", "Sesame"):
        assert secret not in str(refusal.value)


def test_the_errors_say_what_the_loop_must_do_next():
    assert issubclass(StoreUnusable, Terminal)
    assert issubclass(StoreDamaged, Terminal)
    assert issubclass(StoreUnavailable, Transient)
