"""Finds a Java that runs Spark, which wants a full one: on Debian, for root, it is installed where there is none.

In: JAVA_HOME and PATH. Out: the launcher's path. The runtime that ``jvm`` takes from PyPI lacks a module that Spark
needs. Called by ``prepare``; without it the tests on Spark are skipped, and all others run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bellwether_load.jobs.sessions import OLDEST, NoJava, find_java
from realparts.progress import say
from realparts.toolruns import DownloadFailed

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
