"""Bad input is named to a person, other policies go on, and nothing is lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.destinations import VARIABLE
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


@pytest.mark.slow
def test_a_bootstrap_that_leads_to_another_cluster_is_refused_and_nothing_is_lost(
    site: Site, other_kafka: KafkaCluster
) -> None:
    before = site.demote_and_wait(1)
    displaced = site.orders()
    site.change(kafka={"bootstrapServers": [other_kafka.bootstrap]})
    site.until(lambda: site.ready()[0] == "ClusterChanged", 30, "it is refused", site.ready)
    message = site.ready()[1]
    assert site.kafka.cluster_id in message
    assert other_kafka.cluster_id in message
    assert "spec.kafka.bootstrapServers" in message
    assert site.orders() == displaced
    assert site.baselines(site.record())

    site.change(kafka={"bootstrapServers": site.kafka.bootstrap.split(",")})
    site.lift_and_wait(1, before)


@pytest.mark.slow
def test_the_second_policy_for_a_cluster_is_refused_and_takes_over_when_the_first_is_deleted(site: Site) -> None:
    site.policy("second")
    site.until(lambda: site.ready("second")[0] == "ClusterClaimed", 30, "it is refused", lambda: site.ready("second"))
    assert f"policy {site.namespace}/main" in site.ready("second")[1]
    before = site.demote_and_wait(1)
    site.delete()
    site.until(site.gone, 60, "the first is gone")
    assert site.restored(before)
    site.until_reported("second")
    assert site.health(1, "second")["leaders"] > 0


def test_an_empty_cluster_is_no_trouble_and_an_override_on_a_broker_that_does_not_exist_is_named(
    bare_shared_site: Site, empty_kafka: KafkaCluster
) -> None:
    site = bare_shared_site
    site.policy()
    site.until_reported()
    assert site.health(1)["leaders"] == 0
    spec = {"brokerId": 99, "policyRef": {"name": "main"}, "override": {"state": "Demoted", "reason": "a typing error"}}
    body = {
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "BrokerHealth",
        "metadata": {"name": "main-99", "namespace": site.namespace},
        "spec": spec,
    }
    site.server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    site.until(
        lambda: condition(site.status(), "DemotionBlocked").get("reason") == "BrokerDown", 30, "named", site.status
    )
    assert "broker 99" in condition(site.status(), "DemotionBlocked")["message"]
    # Events are posted once the status is written.
    site.until(lambda: "BrokerDown" in site.kubectl("get", "events"), 30, "an event names it")
    site.kubectl("delete", "bh", "main-99")
    site.until(lambda: condition(site.status(), "DemotionBlocked")["status"] == "False", 30, "forgotten", site.status)


@pytest.fixture
def victim() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def refused(site: Site, name: str) -> bool:
    found = condition(site.status(name), "Connected")
    return found.get("status") == "False" and "policies may not connect to 127.0.0.1" in found["message"]


def at(port: Any) -> dict[str, Any]:
    return {"bootstrapServers": [f"127.0.0.1:{port}"]}


def test_server_on_the_operators_machine_is_not_reached_by_default(bare_site: Site, victim: socket.socket) -> None:
    bare_site.operator(**{VARIABLE: ""})
    bare_site.policy("local", kafka=at(victim.getsockname()[1]))
    bare_site.until(lambda: refused(bare_site, "local"), 60, "the policy is refused", lambda: bare_site.status("local"))
    with pytest.raises(TimeoutError):
        victim.accept()


def test_api_server_is_closed_where_its_network_is_allowed(bare_site: Site) -> None:
    bare_site.operator()
    bare_site.policy("main")
    bare_site.policy("api", kafka=at(bare_site.server.url.rpartition(":")[2]))
    bare_site.until(lambda: refused(bare_site, "api"), 60, "the policy is refused", lambda: bare_site.status("api"))
    bare_site.until_reported("main")
