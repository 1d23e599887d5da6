"""Credentials for Kafka, from the Secrets that a policy refers to.

In: ``{name, key}`` references. Out: the value, or a file that only this process's user can read, for clients that
want one; the files go when the reader does, or at the end of the process. No value ever appears in a message (law 11).
Called by ``handlers`` and the command line when a connection is made.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from bellwether.adapters.kubernetes.client import SECRETS, KubernetesClient, NotFound
from bellwether.ports import Terminal


class SecretReader:
    """Reads the Secrets of one namespace. Keep it for as long as a client works with its files."""

    def __init__(self, api: KubernetesClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._directory: Path | None = None
        self._removal: weakref.finalize[..., SecretReader] | None = None

    def __enter__(self) -> SecretReader:
        """Read within a with statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files."""
        self.close()

    def close(self) -> None:
        """Remove the files now, and not only when nobody refers to the reader any more or the process ends."""
        if self._removal is not None:
            self._removal()
        self._directory = self._removal = None

    def value(self, name: str, key: str) -> str:
        """One value as text. Terminal when the Secret or its key is missing, or is not text."""
        try:
            return self._read(name, key).decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise Terminal(f"secret {self._namespace}/{name}: key {key!r} is not UTF-8 text") from None

    def file(self, name: str, key: str) -> Path:
        """One value as a file. Its path changes with its content, so that a client notices a renewed certificate."""
        data = self._read(name, key)
        directory = self._private()
        digest = hashlib.sha256(b"\0".join((self._namespace.encode(), name.encode(), key.encode(), data))).hexdigest()
        path = directory / digest[:32]
        if not path.exists():
            draft = path.with_suffix(f".{os.getpid()}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            draft.replace(path)
        return path

    def _private(self) -> Path:
        """The directory that takes the files, made for the first of them: most processes need none."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="bellwether-"))
            self._removal = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory

    def _read(self, name: str, key: str) -> bytes:
        try:
            found = self._api.get(SECRETS, self._namespace, name)
        except NotFound:
            raise Terminal(
                f"secret {self._namespace}/{name} does not exist: create it with key {key!r}, or correct the reference"
            ) from None
        values = found.get("data") or {}
        if key not in values:
            there = ", ".join(sorted(values)) or "none"
            raise Terminal(f"secret {self._namespace}/{name} has no key {key!r}; its keys: {there}")
        try:
            return base64.b64decode(values[key], validate=True)
        except binascii.Error:
            raise Terminal(f"secret {self._namespace}/{name}: key {key!r} cannot be decoded") from None
