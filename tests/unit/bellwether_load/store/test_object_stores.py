"""The same store in a bucket: objects that are whole or not there, and errors without the keys."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace, TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from bellwether_load.store import filesystems
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import list_rounds
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing, StoreUnavailable, StoreUnusable
from testkit.loads.sample_rounds import held, noted, read_table, rows

BUCKET = "bucket"
KEY, SECRET = "AKIAEXAMPLEKEY", "a-very-secret-key"
_DATE = "2026-11-21T12:00:00.000Z"


class Bucket:
    """One bucket. ``refuse`` gets a method and a key, and gives S3's error code for what is to be refused."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.refuse: Callable[[str, str], str] = lambda _method, _key: ""
        self.lock = threading.Lock()
        bucket = self

        class Handler(_Handler):
            held = bucket

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        host = f"127.0.0.1:{self._server.server_address[1]}"
        self.uri = f"s3://{KEY}:{SECRET}@{BUCKET}/store?region=us-east-1&scheme=http&endpoint_override={host}"

    def __enter__(self) -> Bucket:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_a_store_that_cannot_be_reached_is_not_called_no_store(monkeypatch: pytest.MonkeyPatch):
    def unreachable(_uri: str) -> None:  # Arrow asks for the region of a bucket at an address that cannot be set
        raise OSError("When resolving region for bucket 'b': AWS Error NETWORK_CONNECTION during HeadBucket operation")

    monkeypatch.setattr(filesystems, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=unreachable)))
    with pytest.raises(StoreUnavailable, match=r"s3://b/x: cannot be opened: When .* Check that the store can be rea"):
        Store.open("s3://b/x")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body at once: apart, the client's delayed acknowledgement costs 40 ms a request
    held: Bucket

    def do_GET(self) -> None:
        """An object, a part of one, or a list."""
        key, query = self._asked()
        if self._refused(key):
            return
        if not key:
            self._list(query)
            return
        data = self.held.objects.get(key)
        if data is None:
            self._error(404, "NoSuchKey")
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted:
            first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
            self._answer(206, data[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(data)}"})
        else:
            self._answer(200, data)

    def do_HEAD(self) -> None:
        """Whether an object is there, and how large it is."""
        key, _ = self._asked()
        data = self.held.objects.get(key) if key else b""
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 12:00:00 GMT")
        self.send_header("ETag", '"x"')
        self.end_headers()

    def do_PUT(self) -> None:
        """An object, or a part of an upload."""
        key, query = self._asked()
        data = self._body()
        if self._refused(key):
            return
        with self.held.lock:
            if "uploadId" in query:
                self.held.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
            elif key:
                self.held.objects[key] = data
        self._answer(200, b"", {"ETag": '"x"'})

    def do_POST(self) -> None:
        """The beginning and the end of an upload, or the deletion of many."""
        key, query = self._asked()
        body = self._body().decode()
        if self._refused(key):
            return
        with self.held.lock:
            if "uploads" in query:
                name = f"upload-{len(self.held.uploads)}"
                self.held.uploads[name] = {}
                answer = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            elif "uploadId" in query:
                parts = self.held.uploads[query["uploadId"][0]]
                self.held.objects[key] = b"".join(parts[number] for number in sorted(parts))
                answer = "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
            else:
                for gone in re.findall("<Key>(.*?)</Key>", body):
                    self.held.objects.pop(gone, None)
                answer = "<DeleteResult/>"
        self._answer(200, answer.encode())

    def do_DELETE(self) -> None:
        """An object goes."""
        key, _ = self._asked()
        if self._refused(key):
            return
        with self.held.lock:
            self.held.objects.pop(key, None)
        self._answer(204, b"")

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        return unquote(parts.path.removeprefix(f"/{BUCKET}").lstrip("/")), parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = _unchunked(self.rfile)
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # Pieces within pieces: the inner ones carry a checksum behind them.
        streamed = self.headers.get("x-amz-content-sha256", "").startswith("STREAMING-")
        return _unchunked(io.BytesIO(data)) if streamed else data

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        with self.held.lock:
            found = {key: len(data) for key, data in sorted(self.held.objects.items()) if key.startswith(prefix)}
        below = {key: key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "") for key in found}
        folders = sorted({f"{prefix}{head}{delimiter}" for head, cut, _ in below.values() if cut})
        rows = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{_DATE}</LastModified><Size>{size}</Size></Contents>"
            for key, size in found.items()
            if not below[key][1]
        )
        rows += "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
        count = f"<KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer(200, f"<ListBucketResult><Name>{BUCKET}</Name>{count}{rows}</ListBucketResult>".encode())

    def _refused(self, key: str) -> bool:
        code = self.held.refuse(self.command, key)
        if code:
            self._error(403 if "Access" in code else 500, code)
        return bool(code)

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/xml",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """No one reads it."""


def _unchunked(stream: Any) -> bytes:
    """A body in pieces of declared length; what follows the last one is skipped."""
    data = b""
    while size := int(stream.readline().split(b";")[0], 16):
        data += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return data


@pytest.fixture
def bucket():
    with Bucket() as found:
        yield found


@pytest.fixture
def store(bucket):
    return Store.open(bucket.uri)


def test_files_are_written_listed_read_and_deleted(store, bucket):
    store.write_bytes("a/b.json", b"{}")
    store.write_bytes("a/_tmp-c", b"")
    assert sorted(bucket.objects) == ["store/a/_tmp-c", "store/a/b.json"]
    assert [(file.path, file.size) for file in store.list()] == [("a/b.json", 2)]
    assert [(file.path, file.size) for file in store.list("a")] == [("a/b.json", 2)]
    assert store.read_bytes("a/b.json") == b"{}"
    assert store.exists("a/b.json")
    store.delete("a/b.json")
    assert not store.exists("a/b.json")
    with pytest.raises(StoreMissing):
        store.read_bytes("a/b.json")


def test_a_whole_file_is_put_at_once_under_its_own_name(store, bucket):
    seen = []
    bucket.refuse = lambda method, key: seen.append((method, key)) or ""
    store.write_bytes("a/b.json", b"{}")
    assert "_tmp-" not in str(seen)


def test_rounds_are_kept_and_rolled_up(store, bucket):
    for minute in range(3):
        sample_files.write_round(store, rows(minute))
    assert held(store) == noted(rows(0)) + noted(rows(1)) + noted(rows(2))
    (due,) = due_hours(store, list_rounds(store))
    assert roll_hour(bucket.uri, due).rows == 6
    assert due_hours(store, list_rounds(store)) == []


def test_a_large_file_goes_in_parts_and_comes_back_whole(store, bucket):
    data = bytes(range(256)) * 48_000
    store.write_bytes("large", data)
    assert store.read_bytes("large") == data
    assert len(next(iter(bucket.uploads.values()))) > 1


def test_a_bucket_that_refuses_is_named_without_the_keys(store, bucket):
    bucket.refuse = lambda _method, _key: "AccessDenied"
    for refused in (lambda: store.write_bytes("x", b""), lambda: store.list("samples")):
        with pytest.raises(StoreUnusable, match="Grant this user permission") as error:
            refused()
        assert "s3://bucket/store" in str(error.value)
        assert KEY not in str(error.value)
        assert SECRET not in str(error.value)


def test_a_bucket_that_is_not_there_is_named(store, bucket):
    bucket.refuse = lambda method, _key: "NoSuchBucket" if method in ("PUT", "POST") else ""
    with pytest.raises((StoreUnusable, StoreUnavailable), match="s3://bucket/store/x: cannot be written"):
        store.write_bytes("x", b"1")


def test_damage_in_a_bucket_is_no_fault_of_the_network(store):
    store.write_bytes("x.parquet", b"no Parquet" * 20)
    with pytest.raises(StoreDamaged):
        read_table(store, "x.parquet")
