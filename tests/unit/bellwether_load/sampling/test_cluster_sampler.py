from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES
from bellwether.cli.kafka_target import KafkaTarget
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Unauthenticated
from bellwether.probes.runtime.watched_policies import Selection
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.cli.prometheus_access import prometheus_access
from bellwether_load.sampling.cluster_sampler import Cluster, ClusterSampler, Consumers, Settings, read_limits
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.sampling.topic_consumption import DEFAULT_QUERY
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.security_settings import PLAINTEXT, client_properties

BY_HAND = Selection(ANYWHERE)
STORES = LoadConfig.model_validate(
    {"stores": {n: {"namespaces": ["*"], "uri": u} for n, u in (("default", "/data"), ("archive", "/archive"))}}
)


def test_a_password_that_was_renewed_in_its_file_counts_from_the_next_round_on(tmp_path: Path) -> None:
    file = client_properties(tmp_path / "client.properties", "u", "one")
    cluster = Cluster(KafkaTarget(bootstrap="h:1", command_config=file).connection)
    assert not cluster.read()
    client_properties(file, "u", "two")
    assert cluster.read()
    assert cluster.connection.security.password == "two"
    assert not cluster.read()


def test_a_file_that_goes_bad_is_said_and_what_was_read_before_stays(tmp_path: Path) -> None:
    file = client_properties(tmp_path / "client.properties", "u", "one")
    cluster = Cluster(KafkaTarget(bootstrap="h:1", command_config=file).connection)
    client_properties(file, "u", "")
    with pytest.raises(Unauthenticated, match=r"sasl.jaas.config must be"):
        cluster.read()
    assert cluster.connection.security.password == "one"
    client_properties(file, "u", "two")
    assert cluster.read()


def test_a_renewed_token_for_prometheus_makes_another_client(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    consumers = Consumers("http://prometheus:9090", DEFAULT_QUERY, partial(prometheus_access, tmp_path, ()))
    first = consumers.read()
    assert consumers.read() is first
    token.write_text("two")
    assert consumers.read() is not first
    token.write_bytes(b"\xff")
    with pytest.raises(Terminal, match=r"--prometheus-credentials: .*/token cannot be read as text"):
        consumers.read()


def test_another_store_or_other_days_of_the_rebalance_are_noticed() -> None:
    api = MemoryApi()
    api.put(POLICIES, api_objects.policy())
    cluster = Cluster.of_policy("main", api, "default", BY_HAND)
    api.put(LEADER_REBALANCES, api_objects.rebalance())
    assert cluster.settings_changed()
    cluster = Cluster.of_policy("main", api, "default", BY_HAND)
    assert (cluster.days, cluster.settings_changed()) == (14, False)
    for spec in ({"store": "archive"}, {"historyDays": 30}, {"store": "archive", "historyDays": 30}):
        api.put(LEADER_REBALANCES, api_objects.rebalance(**spec))
        assert cluster.settings_changed()
    cluster = Cluster.of_policy("main", api, "default", BY_HAND)
    assert (cluster.days, cluster.settings_changed()) == (30, False)
    api.put(LEADER_REBALANCES, api_objects.rebalance(**spec, approval="Automatic"))
    assert not cluster.settings_changed()


def of_rebalance(**spec: Any) -> tuple[MemoryApi, Cluster]:
    """The cluster of a policy whose LeaderRebalance names a store and days of its own."""
    api = MemoryApi()
    api.put(POLICIES, api_objects.policy())
    api.put(LEADER_REBALANCES, api_objects.rebalance(store="archive", historyDays=91, **spec))
    return api, Cluster.of_policy("main", api, "default", BY_HAND)


@pytest.mark.parametrize("spec", [{"schedule": "99 99 * * *"}, {"historyDays": 0, "store": ["archive"]}])
def test_an_invalid_rebalance_leaves_store_and_days(spec: dict[str, Any]) -> None:
    api, cluster = of_rebalance()
    api.merge(LEADER_REBALANCES, "default", api_objects.LOADS, {"spec": spec})
    assert not cluster.settings_changed()
    again = Cluster.of_policy("main", api, "default", BY_HAND)
    assert again.days is None, "nothing is removed by a sampler that starts meanwhile"


def test_absence_of_the_rebalance_changes_neither_store_nor_days() -> None:
    api, cluster = of_rebalance()
    api.delete(LEADER_REBALANCES, "default", api_objects.LOADS)
    assert not cluster.settings_changed()
    assert (cluster.days, cluster.uri(STORES)) == (91, "/archive/default/main")


def test_days_are_unknown_until_there_is_a_rebalance() -> None:
    api = MemoryApi()
    api.put(POLICIES, api_objects.policy())
    cluster = Cluster.of_policy("main", api, "default", BY_HAND)
    assert (cluster.days, cluster.uri(STORES)) == (None, "/data/default/main")
    api.put(LEADER_REBALANCES, api_objects.rebalance())
    assert cluster.settings_changed()


def test_credentials_are_renewed_while_rebalances_cannot_be_listed(tmp_path: Path) -> None:
    stop, reads, looks = threading.Event(), [], []

    def read() -> Connection:
        reads.append(1)
        return Connection(("127.0.0.1:1",), PLAINTEXT)

    def present() -> None:
        looks.append(1)
        if len(looks) > 1:
            stop.set()
            raise Terminal("leaderrebalances is forbidden")

    cluster = Cluster(read, present=present)
    consumers = Consumers(None, DEFAULT_QUERY, partial(prometheus_access, None, ()))
    settings = Settings(str(tmp_path), None, 1, 0.1, None, consumers, read_limits(1, 1))
    ClusterSampler(settings, lambda: cluster, SamplingMetrics(), stop).run()
    assert len(reads) == 2
