"""The real parts: how each is made, and what makes use of it.

In: nothing. Out: ``PARTS``, in the order in which they are made where they have to wait for each other. Called by
``prepare`` and by the demo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Flag, auto
from pathlib import Path

from realparts import (
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
from realparts.gotools import GoTool


class Use(Flag):
    """What needs a part."""

    DEMO = auto()
    TESTS = auto()


BOTH = Use.DEMO | Use.TESTS


@dataclass(frozen=True, slots=True)
class Part:
    """One part. ``tool`` is the Go program that has to be compiled for it: one at a time, as each takes all cores."""

    name: str
    make: Callable[[], Path]
    use: Use = Use.TESTS
    tool: GoTool | None = None
    optional: bool = False
    """Without it some tests are skipped, and everything else works."""

    @property
    def compiles(self) -> bool:
        """Whether it must be compiled now."""
        return self.tool is not None and not gotools.built(self.tool)


def _go(tool: GoTool, use: Use = Use.TESTS) -> Part:
    return Part(tool.name, lambda: gotools.binary(tool), use, tool)


PARTS = (
    Part("java", lambda: jvm.java().path, BOTH),
    Part("kafka", kafka_jars.folder, BOTH),
    Part("slowdisk", slowdisk.shim, BOTH),
    Part("kubectl", kubernetes_binaries.kubectl, BOTH),
    Part("etcd", kubernetes_binaries.etcd, BOTH),
    Part("kafka-classes", kafka_class_archive.class_archive),
    Part("kafka-tools", kafka_tools.folder),
    Part("strimzi", strimzi.definitions),
    Part("strimzi-older", lambda: strimzi.definitions(strimzi.OLDER)),
    Part("detour", lambda: shims.compiled(detours.SOURCE)),
    Part("wrongclock", lambda: shims.compiled(wrongclock.SOURCE)),
    Part("spark-java", sparkjava.full_java, optional=True),
    # The small one first: with it Kafka can start while the large one is compiled.
    _go(gotools.TOXIPROXY, BOTH),
    Part("kube-apiserver", kubernetes_binaries.kube_apiserver, BOTH, gotools.APISERVER),
    _go(gotools.PROMETHEUS),
    _go(gotools.PROMTOOL),
    _go(gotools.HELM),
    _go(gotools.GITOPS_HEALTH),
    Part("prometheus-definitions", prometheus_definitions.folder),
)


def used_by(use: Use) -> tuple[Part, ...]:
    """The parts that are needed for it."""
    return tuple(part for part in PARTS if use in part.use)


def named(names: Iterable[str]) -> tuple[Part, ...]:
    """The parts of these names. Raises KeyError."""
    known = {part.name: part for part in PARTS}
    return tuple(known[name] for name in names)
