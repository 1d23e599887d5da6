"""The Prometheus JMX exporter as an agent in a broker's JVM, with Strimzi's rule for rates by topic.

In: a folder for its configuration and a port. Out: options of the JVM; ``http://127.0.0.1:PORT/metrics`` then has
``kafka_server_brokertopicmetrics_bytesout_total{topic="orders"}``. Called by the Kafka starter.
"""

from __future__ import annotations

import json
from pathlib import Path

from realparts import jars

VERSION = "1.0.1"
# The rule of Strimzi's examples/metrics/kafka-metrics.yaml, and of all MBeans only those that it is for: a scrape of
# each second shall cost a broker nothing that a test would feel.
_CONFIGURATION = {
    "lowercaseOutputName": True,
    "includeObjectNames": ["kafka.server:type=BrokerTopicMetrics,*"],
    "rules": [
        {
            "pattern": r"kafka.(\w+)<type=(.+), name=(.+)PerSec\w*, (.+)=(.+)><>Count",
            "name": "kafka_$1_$2_$3_total",
            "type": "COUNTER",
            "labels": {"$4": "$5"},
        }
    ],
}


def options(folder: Path, port: int) -> list[str]:
    """Options of a JVM that serves its metrics on that port of 127.0.0.1. Raises DownloadFailed."""
    configuration = folder / "jmx-exporter.yaml"
    configuration.write_text(json.dumps(_CONFIGURATION))  # JSON is YAML
    (agent,) = jars.folder(f"jmx-exporter-{VERSION}").iterdir()
    return [f"-javaagent:{agent}=127.0.0.1:{port}:{configuration}"]
