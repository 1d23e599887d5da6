"""What metadata leaves out on real brokers: one lacks the listener that is asked, a log directory of another failed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.cli.main import main
from bellwether.core.model.cluster import Cluster
from bellwether.kafka_connection import Connection
from realparts.kafka import create_topics
from testkit.values.security_settings import PLAINTEXT
from waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

ORDERS = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2], [2, 1, 3]]
BROKEN_DISK, NO_LISTENER = 2, 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three brokers with two directories each: broker 2 has lost one, and broker 3 has no listener EXTERNAL."""
    from realparts.kafka import KafkaCluster

    often = {"leader.imbalance.check.interval.seconds": "2"}  # leaders are moved back at once
    with KafkaCluster(3, controllers=1, disks=2, proxied=False, properties=often) as kafka:
        create_topics(kafka.bootstrap, {"orders": len(ORDERS)}, assignments={"orders": ORDERS})
        broken = kafka.broker(BROKEN_DISK)
        broken.stop()
        shutil.rmtree(broken.log_dirs[1])
        broken.log_dirs[1].write_text("not a directory")
        broken.start()
        hidden = kafka.broker(NO_LISTENER)
        hidden.stop()
        settings = hidden.log_dir.parent / "server.properties"
        kept = settings.read_text().replace(f",EXTERNAL://{hidden.external}", "")
        assert "EXTERNAL://" not in kept
        settings.write_text(kept)
        hidden.start()
        until(lambda: led(read(kafka.bootstrap), NO_LISTENER) > 0, 60, "broker 3 leads again")
        yield kafka


def read(bootstrap: str) -> Cluster:
    return KafkaReader(BrokerPool(Connection(tuple(bootstrap.split(",")), PLAINTEXT))).read()


def led(seen: Cluster, broker: int) -> int:
    return sum(p.leader == broker for p in seen.partitions if p.topic == "orders")


def external(cluster: Any) -> str:
    return ",".join(cluster.broker(number).external for number in (1, 2))


def test_what_a_broker_without_the_listener_leads_is_unknown(cluster: Any) -> None:
    inside, outside = read(cluster.bootstrap), read(external(cluster))
    assert (inside.unlisted, outside.unlisted) == (set(), {NO_LISTENER})
    hidden = {p.name for p in outside.partitions if p.leader_unknown}
    assert hidden == {p.name for p in inside.partitions if p.leader == NO_LISTENER} != set()
    assert not any(p.leaderless for p in outside.partitions)


def test_a_failed_log_directory_has_its_replicas_offline(cluster: Any) -> None:
    for seen in (read(cluster.bootstrap), read(external(cluster))):
        assert set(seen.offline_counts) == {BROKEN_DISK}
        assert 0 < seen.offline_counts[BROKEN_DISK] < seen.replica_counts[BROKEN_DISK]


def test_doctor_names_both_and_reports_no_outage(cluster: Any) -> None:
    found = CliRunner().invoke(main, ["doctor", "--bootstrap", external(cluster)])
    said = " ".join(found.output.split())
    assert found.exit_code == 4, found.output
    assert f"broker {NO_LISTENER}: it is alive and lacks the listener of the bootstrap servers" in said
    assert f"broker {BROKEN_DISK}: " in said
    assert "replicas are offline: a log directory has failed" in said
    assert "LeaderLost" not in said


def test_no_partition_of_an_unknown_leader_is_moved(cluster: Any, tmp_path: Path) -> None:
    found = CliRunner().invoke(
        main, ["demote", "1", "--bootstrap", external(cluster), "--record", str(tmp_path / "record"), "--dry-run"]
    )
    seen = read(external(cluster))
    assert [str(p.name) for p in seen.partitions if p.leader_unknown and f"{p.name}: [" in found.output] == []
    assert "ListenerMissing" in found.output


def test_a_controllers_address_is_named_for_what_it_is(cluster: Any) -> None:
    settings = (cluster.directory / "controller-101" / "server.properties").read_text()
    (address,) = re.findall(r"CONTROLLER://(127.0.0.1:[0-9]+)", settings)
    found = CliRunner().invoke(main, ["doctor", "--bootstrap", address])
    assert found.exit_code == 1
    assert f"{address}: is a KRaft controller's listener: use that of a broker" in " ".join(found.output.split())
