"""An object store over HTTP, in memory: as much of S3's protocol as pyarrow speaks with it.

In: nothing. Out: a URI for ``Store.open``, and what lies there. Objects appear once they are whole, an upload in parts
when it is completed, as in S3 itself; the store can be made to refuse. Signatures are not looked at.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

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
        """Not read."""


def _unchunked(stream: Any) -> bytes:
    """A body in pieces of declared length; what follows the last one is skipped."""
    data = b""
    while size := int(stream.readline().split(b";")[0], 16):
        data += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return data
