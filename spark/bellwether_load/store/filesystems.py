"""File store under one URI: a local path, or a file system that pyarrow supports (file, s3, gs, abfs, hdfs).

In: paths below the URI, bytes and tables. Out: the same, or ``StoreError``. A file appears completely or not at all:
where renaming is cheap it is written under a name that begins with ``_tmp-`` and then moved, in an object store it is
uploaded at once. Readers, including Spark, ignore names that begin with ``_`` or ``.``. Used by everything that stores
Parquet.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from bellwether.foreign_text import quoted
from bellwether_load.store.store_errors import (
    StoreDamaged,
    StoreError,
    StoreMissing,
    StoreUnavailable,
    StoreUnusable,
)
from bellwether_load.store.store_uri import Redacted

SMALL_FILE_LIMIT = 16 << 20
"""Bytes of a file that is read whole: the summary of a plan for 2,000 brokers, with weights of each in 168 hours and of
100,000 losses, has up to 11 MB."""

MOST_ROWS = 1 << 22
"""Of a Parquet file: more partitions than the longest answer of Kafka that can be allowed has."""

VALUES_OF_A_ROW = 256
"""Of one column, on average: a week by hour has 168."""

LARGEST_CHUNK, LARGEST_TEXTS = 512 << 20, 128 << 20
"""Bytes of a column in a row group, uncompressed, and of one with texts. 100,000 weeks by hour take 134 MB, as many
bytes as 500,000 names of topics of the greatest length."""

TEMPORARY = "_tmp-"

# How errors of object stores begin; those of a damaged page have no number either.
_FAR = ("aws error", "azure", "google::cloud", "curl", "hdfs")
# Messages of object stores for missing permissions and invalid credentials.
_DENIED = ("access_denied", "accessdenied", "permission denied", "access_key_id", "invalidaccesskeyid", "signature")
# Moving is atomic there; in an object store it would copy the file.
_RENAMING = ("local", "hdfs")


@dataclass(frozen=True, slots=True, order=True)
class Stored:
    """A file: its path below the store's URI, its size in bytes, and its modification time by the store's clock."""

    path: str
    size: int
    modified: datetime | None


class Store:
    """Files under one URI. Safe to share between threads."""

    def __init__(self, system: Any, base: str, shown: Redacted) -> None:
        self._system = system
        self._base = base.rstrip("/")
        self._shown = shown

    @classmethod
    def open(cls, uri: str) -> Store:
        """A store at a local path or a URI; nothing is created yet. Raises StoreUnusable, which hides secrets."""
        shown = Redacted(uri)
        if not shown.scheme:
            if not uri.strip():
                raise StoreUnusable("the store's URI is empty: set a directory, or a URI such as s3://bucket/path")
            return cls(fs.LocalFileSystem(), str(Path(uri).absolute()), shown)
        try:
            system, base = fs.FileSystem.from_uri(uri)
        except (pa.ArrowException, OSError, ImportError, ValueError) as error:
            said = shown.clean(_first_line(error))
            if isinstance(error, OSError) and not _of_content(error):  # s3:// without a region asks for it
                cls._refuse(error, f"{shown}: cannot be opened: {said}")
            remedy = "set a directory, or a URI with file://, s3://, gs://, abfs:// or hdfs:// and its options"
            raise StoreUnusable(f"{shown}: is not a store: {said}: {remedy}") from None
        if not base.strip("/") and system.type_name != "local":
            raise StoreUnusable(f"{shown}: has no bucket: add one, as in {shown.scheme}://bucket/path")
        return cls(system, base, shown)

    def __repr__(self) -> str:
        return f"Store({self})"

    def __str__(self) -> str:
        return str(self._shown)

    def below(self, path: str) -> Store:
        """A store at a subdirectory, which need not exist yet."""
        return Store(self._system, self._full(path), self._shown.below(path))

    def where(self, path: str) -> str:
        """A path for messages: the store's URI and the path, without secrets."""
        return f"{str(self._shown).rstrip('/')}/{path}"

    def write_bytes(self, path: str, data: bytes | pa.Buffer) -> None:
        """Write a file, replacing an existing one. Raises StoreError.

        In an object store it is sent complete, because pyarrow completes an interrupted upload.
        """
        full = PurePosixPath(self._full(path))
        if self._system.type_name not in _RENAMING:
            with self._translated(path, "written"), self._system.open_output_stream(str(full)) as file:
                file.write(data)
            return
        draft = full.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:8]}-{full.name}")
        try:
            with self._translated(path, "written"):
                self._system.create_dir(str(full.parent), recursive=True)
                with self._system.open_output_stream(str(draft)) as file:
                    file.write(data)
                self._sync(draft)
                self._system.move(str(draft), str(full))
                self._sync(full.parent)
        except BaseException:
            with suppress(OSError, pa.ArrowException):
                self._system.delete_file(str(draft))
            raise

    def write_table(self, path: str, table: Any, row_group_size: int = 1 << 20, **options: Any) -> int:
        """Write a table as one Parquet file; returns its bytes. ``options`` are those of pyarrow's ``ParquetWriter``.

        Each row group has the words of its own rows in its dictionaries, not those of the whole table.
        """
        whole = pa.BufferOutputStream()
        with pq.ParquetWriter(whole, table.schema, **options) as writer:
            for first in range(0, max(1, len(table)), row_group_size):
                writer.write_table(_own_words(table.slice(first, row_group_size)), row_group_size)
        data = whole.getvalue()
        self.write_bytes(path, data)
        return int(data.size)

    def read_bytes(self, path: str) -> bytes:
        """Read a small file. Raises StoreError; StoreDamaged if it has more than ``SMALL_FILE_LIMIT`` bytes."""
        with self._translated(path, "read"), self._system.open_input_stream(self._full(path), compression=None) as file:
            data = bytes(file.read(SMALL_FILE_LIMIT + 1))
        if len(data) > SMALL_FILE_LIMIT:
            raise StoreDamaged(f"{self.where(path)}: has more than {SMALL_FILE_LIMIT} bytes")
        return data

    @contextmanager
    def parquet(self, path: str, metadata: Any = None, *, words: bool = False) -> Iterator[Any]:
        """An open ``pyarrow.parquet.ParquetFile``: its metadata, or a row group at a time. Raises StoreError.

        ``metadata`` of the same file, if it was read before, is not read again. Else its footer is checked before
        anything else is read: a file of 1 KiB may unpack to gigabytes. With ``words``, texts come as dictionaries.

        Reading from it may raise pyarrow's own errors; ``reading`` turns them into a StoreError.
        """
        with self._translated(path, "read"):
            source = self._system.open_input_file(self._full(path))
        with source:
            with self._translated(path, "read"):
                found = metadata or pq.read_metadata(source)
                if metadata is None and (problem := _too_much(found)):
                    raise StoreDamaged(f"{self.where(path)}: {problem}. Move it out of the store")
                texts = [found.schema.column(number).path for number in _texts(found)] if words else None
                file = pq.ParquetFile(source, metadata=found, read_dictionary=texts, pre_buffer=False)
            with file:
                yield file

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Convert pyarrow's errors while a file is read into a StoreError that names the file."""
        with self._translated(path, "read"):
            yield

    def list(self, prefix: str = "", *, temporary: bool = False) -> tuple[Stored, ...]:
        """The files below a directory, at any depth, sorted by path; none if the directory does not exist.

        Names that begin with ``_`` or ``.``, and everything below them, are ignored; ``temporary`` returns only those
        that an interrupted write left. Raises StoreError.
        """
        full = self._full(prefix) if prefix else self._base
        with self._translated(prefix, "listed"):
            found = self._system.get_file_info(fs.FileSelector(full or "/", recursive=True, allow_not_found=True))
        files = []
        for info in found:
            if info.type != fs.FileType.File:
                continue
            path = info.path.removeprefix(self._base).lstrip("/")
            name = path.rsplit("/", 1)[-1]
            below = path.removeprefix(prefix).lstrip("/")
            hidden = any(part.startswith(("_", ".")) for part in below.split("/"))
            if name.startswith(TEMPORARY) if temporary else not hidden:
                files.append(Stored(path, int(info.size or 0), info.mtime))
        return tuple(sorted(files, key=lambda file: file.path))

    def exists(self, path: str) -> bool:
        """Whether a file or a directory exists. Raises StoreError."""
        with self._translated(path, "looked at"):
            return bool(self._system.get_file_info(self._full(path)).type != fs.FileType.NotFound)

    def require(self) -> None:
        """For what only reads: raises StoreMissing where nothing is at the store's location, so that a mistyped one is
        not created. Raises StoreError."""
        with self._translated("", "looked at"):
            there = not self._base or self._system.get_file_info(self._base).type != fs.FileType.NotFound
        if not there:
            raise StoreMissing(f"{self} does not exist: correct its URI, or start the sampler, which creates it")

    def delete(self, path: str) -> None:
        """Remove a file, if it exists. Raises StoreError."""
        with self._translated(path, "deleted"):
            try:
                self._system.delete_file(self._full(path))
            except FileNotFoundError:
                return

    def delete_empty(self, path: str) -> None:
        """Remove a local directory, if it has nothing in it; object stores have none."""
        if self._system.type_name == "local":
            with suppress(OSError):
                Path(self._full(path)).rmdir()

    def delete_directory(self, path: str) -> None:
        """Remove a directory and its content, if it exists. Raises StoreError."""
        full = self._full(path)
        with self._translated(path, "deleted"):
            if self._system.get_file_info(full).type == fs.FileType.Directory:
                self._system.delete_dir(full)

    def _full(self, path: str) -> str:
        parts = path.split("/")
        if not path or any(part in ("", ".", "..") for part in parts):
            raise StoreUnusable(f"{path!r} is not a path inside a store: use names joined by single slashes")
        return f"{self._base}/{path}"

    def _sync(self, full: PurePosixPath) -> None:
        """Flush the file to disk, if the file system is local, so that it survives a power failure."""
        if self._system.type_name == "local":
            descriptor = os.open(full, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def _translated(self, path: str, what: str) -> Iterator[None]:
        where = self.where(path)
        try:
            yield
        except StoreError:
            raise
        except FileNotFoundError as error:
            raise StoreMissing(f"{where}: cannot be {what}: there is no such file or directory") from error
        except (OSError, pa.ArrowException) as error:
            said = self._shown.clean(_said(error))
            if what == "read" and _of_content(error):
                message = f"{where}: is damaged or not a Parquet file: {said}"
                raise StoreDamaged(f"{message}. Move it out of the store") from None
            if not isinstance(error, OSError):
                raise
            self._refuse(error, f"{where}: cannot be {what}: {said}")

    @staticmethod
    def _refuse(error: OSError, message: str) -> NoReturn:
        lower = message.lower()
        if isinstance(error, PermissionError) or error.errno == errno.EROFS or any(word in lower for word in _DENIED):
            raise StoreUnusable(
                f"{message}. Grant this user permission to read, list, write and delete there"
            ) from None
        if "no_such_bucket" in lower or "nosuchbucket" in lower:
            raise StoreUnusable(f"{message}. Create the bucket, or correct its name") from None
        if isinstance(error, NotADirectoryError | IsADirectoryError | FileExistsError):
            raise StoreUnusable(
                f"{message}. A file is in the place of a directory, or the reverse: remove it"
            ) from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreUnavailable(f"{message}. Free some space, or shorten the retention") from None
        raise StoreUnavailable(f"{message}. Check that the store can be reached") from None


def _texts(metadata: Any) -> list[int]:
    schema = metadata.schema
    return [n for n in range(len(schema)) if schema.column(n).physical_type == "BYTE_ARRAY"]


def _too_much(metadata: Any) -> str:
    """What of a Parquet file is more than is read, by its footer; empty if nothing is."""
    if metadata.num_rows > MOST_ROWS:
        return f"has {metadata.num_rows:,} rows; at most {MOST_ROWS:,} are read"
    texts = frozenset(_texts(metadata))
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number in range(metadata.num_columns):
            chunk, most = group.column(number), LARGEST_TEXTS if number in texts else LARGEST_CHUNK
            name, size = quoted(chunk.path_in_schema, 60), chunk.total_uncompressed_size
            if size > most:
                return f"column {name} has {size:,} bytes uncompressed in a row group; at most {most:,} are read"
            if chunk.num_values > VALUES_OF_A_ROW * max(1, group.num_rows):
                return f"column {name} has {chunk.num_values:,} values in {group.num_rows:,} rows"
    return ""


def _own_words(table: Any) -> Any:
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            words = table.column(number).cast(field.type.value_type).dictionary_encode()
            table = table.set_column(number, field, words.cast(field.type))
    return table


def _said(error: BaseException) -> str:
    """The system's error text; errors of object stores have no number."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else _first_line(error)


def _of_content(error: OSError | pa.ArrowException) -> bool:
    """Whether the content is at fault: neither the local system nor an object store reports an error."""
    if not isinstance(error, OSError):
        return True
    return not error.errno and not any(word in str(error).lower() for word in _FAR)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
