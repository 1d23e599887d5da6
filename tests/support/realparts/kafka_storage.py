"""Formats the nodes' directories. In: the nodes of one cluster. Out: the cluster's id; directories on disk.

Kafka's StorageTool formats the first controller. A JVM for each of the others would take as long as starting the
brokers, so they get copies: what it writes differs only by ``node.id`` and the random ``directory.id``.
"""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from realparts import kafka_jars
from realparts.kafka_settings import SECURE_PASSWORD, SECURE_USER, Node
from realparts.processes import StartFailed
from waiting import ran


def random_uuid() -> str:
    """A random id in Kafka's form: 128 bits, URL-safe base64, never with a dash in front (it would be an option)."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def format_nodes(nodes: Sequence[Node], *, scram: bool, features: Mapping[str, int] | None = None) -> str:
    """Format all the nodes of a new cluster and return its id; with ``scram``, the secure listener's user exists.

    ``features`` gives some features another level than a new cluster of this version has.
    """
    cluster_id = random_uuid()
    # Since Kafka 4.4 only a controller gets the levels of the cluster's features.
    first, *others = sorted(nodes, key=lambda node: node.controller_port is None)
    _run_storage_tool(first, cluster_id, scram=scram, features=features or {})
    for node in others:
        _copy(first.metadata_dir, node.metadata_dir, node.id)
        for source, target in zip(first.log_dirs, node.log_dirs, strict=True):
            _copy(source, target, node.id)
    return cluster_id


def _run_storage_tool(node: Node, cluster_id: str, *, scram: bool, features: Mapping[str, int]) -> None:
    user = f"SCRAM-SHA-512=[name={SECURE_USER},password={SECURE_PASSWORD}]"
    arguments = ["format", "--cluster-id", cluster_id, "--config", str(node.folder / "server.properties")]
    for name, level in features.items():
        arguments += ["--feature", f"{name}={level}"]
    ended = ran(kafka_jars.command("kafka.tools.StorageTool", [*arguments, *(["--add-scram", user] if scram else [])]))
    if ended.returncode != 0:
        raise StartFailed(f"formatting {node.folder} failed:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")


def _copy(source: Path, target: Path, node_id: int) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)
    meta = target / "meta.properties"
    changed = {"node.id": str(node_id), "directory.id": random_uuid()}
    lines = []
    for line in meta.read_text().splitlines():
        key, equals, _ = line.partition("=")
        lines.append(f"{key}={changed[key]}" if equals and key in changed else line)
    meta.write_text("\n".join(lines) + "\n")
