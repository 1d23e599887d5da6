"""Kafka's command line tools under the names that Kafka ships them by, for examples that people follow.

In: a folder. Out: the same with a script for each tool, to be put on the PATH. The tools are one jar more than the
brokers need. Called by ``testkit.processes.readme_runner`` and the evacuation benchmark.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from realparts import jars, jvm, kafka_jars

NEWER = kafka_jars.NUMBERS >= (4, 4)
SCRIPTS = {
    "kafka-cluster.sh": "org.apache.kafka.tools.ClusterTool",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand" if NEWER else "kafka.admin.ConfigCommand",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
}
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


def folder() -> Path:
    """The folder of the tools' jar, fetched and checked the first time."""
    return jars.folder(f"kafka-tools-{kafka_jars.VERSION}")


def install(scripts: Path) -> None:
    """Write the scripts into a folder, which is made."""
    scripts.mkdir(parents=True, exist_ok=True)
    class_path = ":".join(str(jar) for place in (kafka_jars.folder(), folder()) for jar in sorted(place.iterdir()))
    java = [str(jvm.java().path), "-Xmx128m", *kafka_jars.FLAGS, QUIET, "-cp", class_path]
    for name, main_class in SCRIPTS.items():
        script = scripts / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join([*java, main_class])} "$@"\n')
        script.chmod(0o755)
