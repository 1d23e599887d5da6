"""Small C libraries that change what one process sees of its machine (LD_PRELOAD), compiled once into the cache.

In: a C source. Out: the compiled library, and environment variables to start a process with. Called by
``slowdisk``, ``detours`` and ``wrongclock``.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from realparts import cache, causes, toolruns
from realparts.toolruns import DownloadFailed

PRELOAD = "LD_PRELOAD"


def compiled(source: Path) -> Path:
    """The library of a source, built once for each version of it. Raises DownloadFailed without a C compiler."""
    version = hashlib.sha256(source.read_bytes()).hexdigest()[:12]

    def make(staged: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise DownloadFailed(f"{source.name} cannot be compiled: {causes.NO_COMPILER}")
        command = [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(staged), str(source), "-ldl"]
        toolruns.run(source.stem, command, doing=f"compiling {source.name}")

    return cache.once(f"lib/{source.stem}-{version}.so", f"compiling the shim {source.stem}", make)


def together(*environments: Mapping[str, str]) -> dict[str, str]:
    """Several shims for one process."""
    merged = {name: value for one in environments for name, value in one.items()}
    libraries = [one[PRELOAD] for one in environments if PRELOAD in one]
    return {**merged, PRELOAD: ":".join(libraries)} if libraries else merged
