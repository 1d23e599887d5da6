"""Looks through an unpacked image for what does not belong into one.

In: a root file system. Out: paths, as the container sees them. Called by the tests; nothing is changed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

# Programs that build or install software.
_TOOLS = re.compile(
    r"(?:pip|pip3|pip3\.\d+|easy_install|gcc|g\+\+|cc|c\+\+|cpp|clang|ld|as|make|cmake|go|cargo|mvn|javac"
    r"|apt|apt-get|aptitude|dpkg|dpkg-deb|dnf|yum|apk|perl|git|curl|wget|uv)(?:-\d+)?$"
)
_TOOL_PACKAGES = re.compile(r"site-packages/(?:pip|setuptools|wheel|ensurepip|hatchling|uv)(?:-[^/]*)?$|/ensurepip$")
_HISTORIES = re.compile(r"/\.(?:bash_history|ash_history|python_history|lesshst|wget-hsts|viminfo|netrc|pypirc)$")
_SECRETS = re.compile(
    rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}|AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{36}"
    rb"|https?://[\w.%-]+:(?!pass(?:word)?@)[\w.%-]+@"  # libraries explain URLs by such words
)
_SECRET_FILES = re.compile(r"\.(?:key|p12|pfx|jks|kubeconfig)$|/(?:id_rsa|id_ed25519|credentials|kubeconfig)$")


def setuid(root: Path) -> list[str]:
    """Files that change the user or the group that runs them."""
    return _where(root, lambda _path, mode: stat.S_ISREG(mode) and bool(mode & (stat.S_ISUID | stat.S_ISGID)))


def writable(root: Path, uid: int, gid: int) -> list[str]:
    """Files and folders that this user could write to if the root file system were not read-only."""

    def may_write(path: Path, mode: int) -> bool:
        if stat.S_ISLNK(mode):
            return False
        owner = path.lstat()
        mine = mode & stat.S_IWUSR if owner.st_uid == uid else mode & stat.S_IWGRP if owner.st_gid == gid else 0
        return bool(mine or mode & stat.S_IWOTH)

    return _where(root, may_write)


def tools(root: Path) -> list[str]:
    """Compilers, package managers and downloaders, as programs or as Python packages."""

    def is_tool(path: Path, mode: int) -> bool:
        program = not stat.S_ISDIR(mode) and path.parent.name in {"bin", "sbin"} and bool(_TOOLS.fullmatch(path.name))
        return program or bool(_TOOL_PACKAGES.search(path.as_posix()))

    return _where(root, is_tool)


def histories(root: Path) -> list[str]:
    """What shells and clients leave in a home."""
    return _where(root, lambda path, _mode: bool(_HISTORIES.search(path.as_posix())))


def secrets(root: Path) -> list[str]:
    """Files that look like keys or hold what looks like one."""

    def is_secret(path: Path, mode: int) -> bool:
        if not stat.S_ISREG(mode):
            return False
        return bool(_SECRET_FILES.search(path.as_posix())) or bool(_SECRETS.search(path.read_bytes()))

    return _where(root, is_secret)


def caches(root: Path) -> list[str]:
    """Files in the folders that package managers and builds fill."""
    spent = ("var/cache", "var/log", "var/lib/apt", "var/tmp", "tmp", "root", "run")
    found = [path for folder in spent for path in (root / folder).rglob("*") if path.is_file()]
    return sorted(f"/{path.relative_to(root)}" for path in found)


UNCHECKED_HASH = (1).to_bytes(4, "little")
"""Flags of bytecode that holds a hash of its source and is used without a look at it (PEP 552)."""


def stale_bytecode(root: Path) -> list[str]:
    """Python sources of the environment without bytecode that is used whatever the time of the source.

    A read-only root could never keep what is compiled again, so each start would pay.
    """
    sources = (root / "opt" / "bellwether").rglob("*.py")
    return sorted(
        f"/{source.relative_to(root)}"
        for source in sources
        if "__pycache__" not in source.parts
        and "bin" not in source.parts
        and not any(
            path.read_bytes()[4:8] == UNCHECKED_HASH
            for path in (source.parent / "__pycache__").glob(f"{source.stem}.cpython-*.pyc")
        )
    )


def _where(root: Path, wanted: Callable[[Path, int], bool]) -> list[str]:
    return sorted(f"/{path.relative_to(root)}" for path, mode in _walk(root) if wanted(path, mode))


def _walk(root: Path) -> Iterator[tuple[Path, int]]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            yield path, path.lstat().st_mode
