from __future__ import annotations

from pathlib import Path

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES
from bellwether.cli.kafka_target import KafkaTarget
from bellwether.ports.errors import Terminal, Unauthenticated
from bellwether_load.cli.prometheus_options import PrometheusAccess
from bellwether_load.sampling.cluster_sampler import Cluster, Consumers
from bellwether_load.sampling.topic_consumption import DEFAULT_QUERY
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi


def reading(password: Path) -> Cluster:
    """A cluster that is named by options, one of them a file with the password."""
    options = {"sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password_file": password}
    return Cluster(KafkaTarget(bootstrap="h:1", tls=True, **options).connection)


def test_a_password_that_was_renewed_in_its_file_counts_from_the_next_round_on(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("one")
    cluster = reading(password)
    assert not cluster.read()
    password.write_text("two")
    assert cluster.read()
    assert cluster.connection.security.password == "two"
    assert not cluster.read()


def test_a_file_that_goes_bad_is_said_and_what_was_read_before_stays(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("one")
    cluster = reading(password)
    password.write_text("")
    with pytest.raises(Unauthenticated, match=r"--sasl-password-file .* is empty"):
        cluster.read()
    assert cluster.connection.security.password == "one"
    password.write_text("two")
    assert cluster.read()


def test_a_renewed_token_for_prometheus_makes_another_client(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    consumers = Consumers("http://prometheus:9090", DEFAULT_QUERY, PrometheusAccess(token_file=token).read)
    first = consumers.read()
    assert consumers.read() is first
    token.write_text("two")
    assert consumers.read() is not first
    token.unlink()
    with pytest.raises(Terminal, match=r"--prometheus-token-file .* cannot be read as text"):
        consumers.read()


def test_another_store_or_other_days_of_the_rebalance_are_noticed() -> None:
    api = MemoryApi()
    api.put(POLICIES, api_objects.policy())
    cluster = Cluster.of_policy("main", api, "default")
    api.put(LEADER_REBALANCES, api_objects.rebalance())
    assert (cluster.days, cluster.settings_changed()) == (14, False)
    for spec in ({"store": "archive"}, {"historyDays": 30}, {"store": "archive", "historyDays": 30}):
        api.put(LEADER_REBALANCES, api_objects.rebalance(**spec))
        assert cluster.settings_changed()
    cluster = Cluster.of_policy("main", api, "default")
    assert (cluster.days, cluster.settings_changed()) == (30, False)
    api.put(LEADER_REBALANCES, api_objects.rebalance(**spec, approval="Automatic"))
    assert not cluster.settings_changed()
    api.delete(LEADER_REBALANCES, "default", api_objects.LOADS)
    assert cluster.settings_changed()
