"""Fetches and builds every real part into the cache, with progress, so that later starts take seconds.

In: ``python -m realparts.prepare [PART ...]``. Out: one line for each part with its path; exit status 1 when a part
cannot be had, with the reason and the remedy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from realparts import (
    cache,
    detours,
    gotools,
    jvm,
    kafka_class_archive,
    kafka_jars,
    kafka_tools,
    kubernetes_binaries,
    prometheus_definitions,
    shims,
    slowdisk,
    sparkjava,
    strimzi,
    wrongclock,
)
from realparts.downloads import DownloadFailed
from realparts.progress import say

PARTS: Mapping[str, Callable[[], Path]] = {
    "java": lambda: jvm.java().path,
    "spark-java": sparkjava.full_java,
    "kafka": kafka_jars.folder,
    "kafka-classes": kafka_class_archive.class_archive,
    "kafka-tools": kafka_tools.folder,
    "toxiproxy": lambda: gotools.binary(gotools.TOXIPROXY),
    "strimzi": strimzi.definitions,
    "strimzi-older": lambda: strimzi.definitions(strimzi.OLDER),
    "slowdisk": slowdisk.shim,
    "prometheus": lambda: gotools.binary(gotools.PROMETHEUS),
    "promtool": lambda: gotools.binary(gotools.PROMTOOL),
    "detour": lambda: shims.compiled(detours.SOURCE),
    "wrongclock": lambda: shims.compiled(wrongclock.SOURCE),
    "alertmanager": lambda: gotools.binary(gotools.ALERTMANAGER),
    "helm": lambda: gotools.binary(gotools.HELM),
    "prometheus-definitions": prometheus_definitions.folder,
    "kubectl": kubernetes_binaries.kubectl,
    "etcd": kubernetes_binaries.etcd,
    "kube-apiserver": kubernetes_binaries.kube_apiserver,
}

# Without these some tests are skipped, and everything else works.
OPTIONAL = frozenset({"spark-java"})


def all_parts(names: Sequence[str] = ()) -> dict[str, Path]:
    """Have these parts (all of them by default) ready, and return where they are. Raises DownloadFailed.

    An optional part that was not asked for by name may be missing.
    """
    found = {}
    for name in names or PARTS:
        try:
            found[name] = PARTS[name]()
        except DownloadFailed as problem:
            if names or name not in OPTIONAL:
                raise
            say(f"no {name}, so what needs it is skipped: {problem}")
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m realparts.prepare", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"one of: {', '.join(PARTS)} (default: all)")
    names = parser.parse_args().part
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    try:
        for name, path in all_parts(names).items():
            print(f"{name:<15} {path}")
    except DownloadFailed as problem:
        sys.exit(f"{problem}\nwhat is complete stays in {cache.root()}")


if __name__ == "__main__":
    main()
