"""One node's server.properties as a pure function. In: what the node is and where it listens. Out: a mapping.

Called by ``kafka`` when it lays out a cluster. Everything that is not set here is Kafka's own default: the session
timeout, the replica lag time and the automatic preferred election are as operators know them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECURE_USER = "admin"
SECURE_PASSWORD = "never-to-be-shown"


@dataclass(frozen=True, slots=True)
class Node:
    """One Kafka process. Ports are on 127.0.0.1; a role that the node does not play has port None.

    ``names`` gives listeners other names than INTERNAL, EXTERNAL and SECURE. With ``replication_port`` brokers reach
    each other over a listener of their own, REPLICATION, by name.
    """

    id: int
    folder: Path
    controller_port: int | None = None
    internal_port: int | None = None
    external_port: int | None = None
    external_advertised_port: int | None = None
    secure_port: int | None = None
    replication_port: int | None = None
    metrics_port: int | None = None
    rack: str | None = None
    key_store: Path | None = None
    external_key_store: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    disks: int = 1

    @property
    def log_dir(self) -> Path:
        """Where the partitions' data are."""
        return self.folder / "data"

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """All directories for partitions' data: one for each disk, the first being ``log_dir``."""
        return (self.log_dir, *(self.folder / f"disk-{number}" for number in range(1, self.disks)))

    @property
    def metadata_dir(self) -> Path:
        """Where the cluster's metadata log is: outside the data, so that a slow disk slows the data alone."""
        return self.folder / "metadata"

    @property
    def host_name(self) -> str:
        """What other brokers call it, where they reach it by name."""
        return f"broker-{self.id}.test"

    @property
    def is_broker(self) -> bool:
        """Whether it holds partitions."""
        return self.internal_port is not None


def properties(node: Node, voters: Sequence[Node], brokers: int) -> dict[str, str]:
    """The node's settings in a cluster of that many brokers whose quorum the voters are."""
    replicas = str(min(3, brokers))
    roles = [*(["broker"] if node.is_broker else []), *(["controller"] if node.controller_port else [])]
    listeners, advertised = _listeners(node)
    settings = {
        "process.roles": ",".join(roles),
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{voter.id}@127.0.0.1:{voter.controller_port}" for voter in voters),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,REPLICATION:PLAINTEXT,SECURE:SASL_SSL,"
            + ("EXTERNAL:SASL_SSL" if node.external_key_store else "EXTERNAL:PLAINTEXT")
        ),
        "log.dirs": ",".join(map(str, node.log_dirs)),
        "metadata.log.dir": str(node.metadata_dir),
        **(
            {
                "advertised.listeners": ",".join(advertised),
                "inter.broker.listener.name": "REPLICATION" if node.replication_port else "INTERNAL",
            }
            if advertised
            else {}
        ),
        **({"broker.rack": node.rack} if node.rack else {}),
        **(_secure("secure", node.key_store) if node.key_store else {}),
        **(_secure("external", node.external_key_store) if node.external_key_store else {}),
        # Small, so that several brokers and thousands of partitions fit on two cores.
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "10",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "2",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "group.coordinator.threads": "1",
        "share.coordinator.threads": "1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
        "log.index.size.max.bytes": str(256 * 1024),
    }
    return {**_renamed(settings, node.names), **node.extra}


def render(settings: Mapping[str, str]) -> str:
    """The text of a properties file; backslashes are doubled, as Java's format wants it."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items())


def _listeners(node: Node) -> tuple[list[str], list[str]]:
    listeners, advertised = [], []
    if node.internal_port is not None:
        listeners.append(f"INTERNAL://127.0.0.1:{node.internal_port}")
        listeners.append(f"EXTERNAL://127.0.0.1:{node.external_port}")
        advertised.append(f"INTERNAL://127.0.0.1:{node.internal_port}")
        advertised.append(f"EXTERNAL://127.0.0.1:{node.external_advertised_port}")
    if node.secure_port is not None:
        listeners.append(f"SECURE://127.0.0.1:{node.secure_port}")
        advertised.append(f"SECURE://127.0.0.1:{node.secure_port}")
    if node.replication_port is not None:
        listeners.append(f"REPLICATION://127.0.0.1:{node.replication_port}")
        advertised.append(f"REPLICATION://{node.host_name}:{node.replication_port}")
    if node.controller_port is not None:
        listeners.append(f"CONTROLLER://127.0.0.1:{node.controller_port}")
    return listeners, advertised


def _renamed(settings: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The same settings, listeners being called otherwise."""
    found = dict(settings)
    for before, after in names.items():
        old, new = f"listener.name.{before.lower()}.", f"listener.name.{after.lower()}."
        found = {key.replace(old, new): value for key, value in found.items()}
        for key in ("listeners", "advertised.listeners", "listener.security.protocol.map"):
            if key in found:
                found[key] = re.sub(rf"\b{before}:", f"{after}:", found[key])
    return found


def key_store_setting(listener: str) -> str:
    """The setting that names a listener's key and certificate; Kafka follows a change of it without a restart."""
    return f"listener.name.{listener}.ssl.keystore.location"


def _secure(listener: str, key_store: Path) -> dict[str, str]:
    return {
        f"listener.name.{listener}.ssl.keystore.type": "PEM",
        key_store_setting(listener): str(key_store),
        f"listener.name.{listener}.ssl.client.auth": "none",
        f"listener.name.{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
