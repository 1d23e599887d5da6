"""Kafka's jars and how to run a class of them. In: nothing. Out: command lines for the JVM.

Called by the Kafka starter (brokers), ``kafka_storage`` (formatting) and by users of Kafka's own tools.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from realparts import cache, jars, jvm

VERSION = os.environ.get("KAFKA_VERSION", "4.4.0")
"""The version of all brokers of this process, of those whose jars ``locks/`` has: ``KAFKA_VERSION=4.3.1 make test``."""
_major, _minor, _ = VERSION.split(".")
NUMBERS = int(_major), int(_minor)
# Small heap, one collector thread, no optimising compiler: a broker in a test lives for minutes, next to many others.
FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
LOGGING = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.state.change.logger=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.log=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.storage.internals.log=warn",
)


@functools.cache
def folder() -> Path:
    """The folder of the jars, fetched and checked the first time."""
    return jars.folder(f"kafka-{VERSION}")


@functools.cache
def class_archive() -> Path:
    """Where ``kafka_class_archive`` keeps the archive that fits these jars and this Java; it may not be there."""
    key = hashlib.sha256(f"{folder()} {jvm.java().build} {FLAGS}".encode()).hexdigest()[:12]
    return cache.root() / "classes" / f"kafka-{VERSION}-{key}.jsa"


def command(
    main_class: str,
    arguments: Sequence[str | Path],
    *,
    heap: str = "256m",
    options: Sequence[str] = (),
    classes: Sequence[Path] = (),
) -> list[str]:
    """The command line that runs a class of Kafka, with further options of the JVM and folders of classes."""
    class_path = ":".join(map(str, (*sorted(folder().iterdir()), *classes)))
    archive = class_archive()
    return [
        str(jvm.java().path),
        f"-Xmx{heap}",
        *FLAGS,
        *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []),
        *options,
        *LOGGING,
        "-cp",
        class_path,
        main_class,
        *(str(argument) for argument in arguments),
    ]
