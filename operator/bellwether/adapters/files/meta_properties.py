"""Which broker a log directory belongs to: ``node.id`` in ``meta.properties``, which Kafka writes when it formats it.

In: log directories, or mount points of volumes that have theirs right below. Out: the broker that they prove. Kafka
checks the file at each start against its own configuration, so it is true of the very disk that is measured, whatever
the pods are called. Called by the commands that run next to a broker, and by the quarantine agent about its process.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bellwether.ports.errors import Terminal, Transient

NAME = "meta.properties"
_LARGEST_ID = 2147483647
_MOST_BYTES = 65536
_ROOT = Path("/")
_ID_KEYS = ("node.id", "broker.id")  # the second until version 1 of the file
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")  # what no id of Kafka has
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # without the last, a named pipe would wait for a writer


@dataclass(frozen=True, slots=True)
class LogDirIdentity:
    """What a log directory says of itself. Ids that the file does not have are empty; ``file`` is that very file."""

    broker: int
    path: Path
    cluster_id: str = ""
    directory_id: str = ""
    file: tuple[int, ...] = field(default=(), compare=False)

    @property
    def owner(self) -> tuple[int, str]:
        """The broker, and its Kafka cluster."""
        return self.broker, self.cluster_id

    def __str__(self) -> str:
        """For messages: the path, and the directory's own id where Kafka gave it one (3.7)."""
        return f"{self.path}{f' (directory.id {self.directory_id})' if self.directory_id else ''}"


def read_log_dir(directory: Path, root: Path = _ROOT) -> LogDirIdentity:
    """The identity of a log directory; ``root`` is where that path is looked for.

    Raises Transient while it cannot be known: not formatted yet, not readable. Raises Terminal if it names two brokers.
    """
    place = root / directory.relative_to(_ROOT) if root != _ROOT else directory
    try:
        formatted = place / NAME in place.iterdir()
    except OSError as error:
        raise _unreadable(directory, error) from error
    found = [place] if formatted else sorted(file.parent for file in place.glob(f"*/{NAME}"))
    if not found:
        raise Transient(
            f"{directory}: no {NAME} in it or right below, so that its broker is not known: waiting until Kafka has"
            " formatted the directory; if Kafka uses another one, set its path"
        )
    return same_broker([_parsed(one / NAME, directory / one.relative_to(place)) for one in found])


def read_broker(directories: Iterable[Path], root: Path = _ROOT) -> LogDirIdentity:
    """The identity of a broker by all of its directories that can be read. Raises as ``read_log_dir``."""
    found, unknown = list[LogDirIdentity](), list[Transient]()
    for directory in directories:
        try:
            found.append(read_log_dir(directory, root))
        except Transient as error:
            unknown.append(error)
    if not found:
        raise unknown[0] if unknown else Transient("it has no log directory open yet")
    return same_broker(found)


def same_broker(found: Iterable[LogDirIdentity]) -> LogDirIdentity:
    """The first of these, if all belong to one broker. Raises Terminal, and names two that do not."""
    first, *others = found
    for other in others:
        if other.owner != first.owner:
            raise Terminal(
                f"{first.path}/{NAME} has node.id {first.broker} of cluster {first.cluster_id or 'unknown'}, and"
                f" {other.path}/{NAME} has {other.broker} of {other.cluster_id or 'unknown'}: nothing is reported, as"
                " the broker is not known: give the directories of one broker"
            )
    return first


def replaced(before: LogDirIdentity) -> str:
    """What has become of a log directory that is not the same any more; empty if it is, or cannot be read now.

    A disk that fails proves nothing about whose it is; a directory without the file is no log directory. While the file
    is the same one it is not read again, so that a disk with slow reads delays no caller.
    """
    with suppress(OSError):
        if _signature((before.path / NAME).stat()) == before.file:
            return ""
    try:
        now = _parsed(before.path / NAME, before.path)
    except (Transient, Terminal) as error:
        fails = isinstance(error.__cause__, OSError) and error.__cause__.errno not in (errno.ENOENT, errno.ENOTDIR)
        return "" if fails else f"the log directory of broker {before.broker} was replaced: {error}"
    if now == before:
        return ""
    return f"the log directory of broker {before.broker}, {before}, was replaced by one of broker {now.broker}, {now}"


def _parsed(file: Path, shown: Path) -> LogDirIdentity:
    try:
        descriptor = os.open(file, _FLAGS)
        try:
            opened, text = _signature(os.fstat(descriptor)), os.read(descriptor, _MOST_BYTES).decode("utf-8", "replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(shown / NAME, error) from error
    stated = {k: v.rstrip(" \t\r") for k, v in re.findall(r"^[ \t]*([\w.]+)[ \t]*[=:][ \t]*(.*)", text, re.MULTILINE)}
    ids = {key: stated[key] for key in _ID_KEYS if key in stated}
    for key, value in ids.items():
        if not re.fullmatch("[0-9]{1,10}", value) or int(value) > _LARGEST_ID:
            raise Transient(
                f"{shown}/{NAME} has {key} {value[:20]!r}, which is no broker id: format the directory again"
            )
    if len({int(value) for value in ids.values()}) > 1:
        raise Terminal(f"{shown}/{NAME} has {' and '.join(f'{k} {v}' for k, v in ids.items())}: format it again")
    if not ids:
        raise Transient(f"{shown}/{NAME} has neither node.id nor broker.id: format the directory again")
    cluster, own = (re.sub(_FOREIGN, "", stated.get(key, ""))[:64] for key in ("cluster.id", "directory.id"))
    return LogDirIdentity(int(next(iter(ids.values()))), shown, cluster, own, opened)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _unreadable(what: Path, error: OSError) -> Transient:
    remedy = "set the path that the broker's volume has here, and a user who may read it, such as the broker's"
    return Transient(f"{what} cannot be read, so that its broker is not known ({error.strerror}): {remedy}")
