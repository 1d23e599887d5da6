"""Bad input is named to a person, other policies go on, and nothing is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS
from testkit.processes.crash_points import REACHED, WENT_ON
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


@pytest.mark.slow
def test_an_unreachable_bootstrap_is_named_and_another_policy_goes_on(site: Site) -> None:
    address = f"127.0.0.1:{site.free_port()}"
    site.policy("lost", kafka={"bootstrapServers": [address]})
    site.until(lambda: site.ready("lost")[0] == "ClusterUnreachable", 30, "it is named", lambda: site.ready("lost"))
    message = site.ready("lost")[1]
    assert address in message
    assert "Check that Kafka runs and that these addresses are right" in message
    assert condition(site.status("lost"), "Connected")["status"] == "False"

    before = site.orders()
    site.demote(1)
    site.until_demoted(1, before)
    site.change("lost", kafka={"bootstrapServers": site.kafka.bootstrap.split(",")})
    site.until(lambda: site.ready("lost")[0] == "ClusterClaimed", 30, "it connects", lambda: site.ready("lost"))


@pytest.mark.slow
def test_a_bootstrap_that_leads_to_another_cluster_is_refused_and_nothing_is_lost(
    site: Site, other_kafka: KafkaCluster
) -> None:
    before = site.orders()
    site.demote(1)
    site.until_demoted(1, before)
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
    site.lift(1)
    site.until_restored(before)


@pytest.mark.slow
def test_the_second_policy_for_a_cluster_is_refused_and_takes_over_when_the_first_is_deleted(site: Site) -> None:
    site.policy("second")
    site.until(lambda: site.ready("second")[0] == "ClusterClaimed", 30, "it is refused", lambda: site.ready("second"))
    assert f"policy {site.namespace}/main" in site.ready("second")[1]
    before = site.orders()
    site.demote(1)
    site.until_demoted(1, before)
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


@pytest.mark.slow
def test_partitions_without_another_leader_are_held_and_named(site: Site, breakable_kafka: KafkaCluster) -> None:
    single, pair = f"{site.topic}-single", f"{site.topic}-pair"
    site.topics({single: 2, pair: 2}, assignments={single: [[1], [1]], pair: [[1, 2], [1, 2]]})
    breakable_kafka.broker(2).stop()
    site.until(lambda: all(p.isr == (1,) for p in site.partitions(pair).values()), 60, "one ISR member is left")
    before = {n: p.replicas for n, p in site.partitions().items()}
    site.demote(1)
    site.until(lambda: reasons(site) == {"OnlyReplica": 2, "NoHealthyIsrMember": 2}, 60, "both are named", site.status)
    sample = {(one["topic"], one["reason"]) for one in site.status()["blockedPartitions"]["sample"]}
    assert sample >= {(single, "OnlyReplica"), (pair, "NoHealthyIsrMember")}
    site.until(lambda: led_by_alone(site, 3, site.topic), 30, "what has another ISR member moved", site.partitions)
    assert led_by_alone(site, 1, single, pair)

    breakable_kafka.broker(2).start()
    site.until(
        lambda: reasons(site) == {"OnlyReplica": 2}, 60, "the pair moves to the broker that is back", site.status
    )
    site.until(lambda: led_by_alone(site, 2, pair), 30, "broker 2 leads the pair", site.partitions)
    site.lift(1)
    site.until_restored(before)


@pytest.mark.slow
def test_a_topic_recreated_during_a_demotion_is_demoted_as_new(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy(election={"batchSize": 15})
    operator = site.operator(program="testkit.processes.crash_points", FREEZES_AT="after reorder 1")
    site.until_reported()
    site.demote(1)
    site.until(lambda: REACHED in operator.log.read_text(), 30, "the operator is frozen between two requests")
    site.delete_topic(site.topic)
    site.topics({site.topic: 3}, assignments={site.topic: [[1, 3, 2], [1, 2, 3], [2, 1, 3]]})
    before = site.orders()
    operator.resume()
    site.until(lambda: WENT_ON in operator.log.read_text(), 30, "the operator goes on")
    site.until_demoted(1, before)
    site.lift(1)
    site.until_restored(before)
    gone = [m for m in site.api.list(CONFIG_MAPS, site.namespace) if "-export-" in m["metadata"]["name"]]
    assert not gone


@pytest.mark.slow
def test_missing_secrets_are_named_and_a_secure_listener_works_once_they_are_there(bare_site: Site) -> None:
    site = bare_site
    secure = site.kafka.security
    assert secure is not None
    site.topics()
    before = site.orders()
    site.policy(
        kafka={
            "bootstrapServers": secure.bootstrap.split(","),
            "tls": {"caSecretName": "kafka-ca"},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": secure.username,
                "passwordSecretName": "kafka-user",
            },
        }
    )
    site.operator()
    password, authority = ("secret", "generic", "kafka-user"), ("secret", "generic", "kafka-ca")
    site.until(lambda: "kafka-user does not exist" in site.ready()[1], 60, "a missing Secret is named", site.ready)
    assert "create it with key 'password'" in site.ready()[1]
    site.kubectl("create", *password, f"--from-literal=password={secure.password}")
    site.until(lambda: "kafka-ca does not exist" in site.ready()[1], 30, "the other Secret is named", site.ready)
    site.kubectl("create", *authority, f"--from-file=ca.crt={secure.ca}")
    site.until_reported()
    site.demote(1)
    site.until_demoted(1, before)
    said = site.kubectl("get", "lp,bh,cm,events", "-o", "json") + site.processes[0].log.read_text()
    assert secure.password not in said


def led_by_alone(site: Site, broker: int, *topics: str) -> bool:
    """Whether a broker leads every partition of some topics."""
    return {p.leader for p in site.partitions(*topics).values()} == {broker}


def reasons(site: Site) -> dict[str, int]:
    """How many of the held partitions each reason holds."""
    return {one["reason"]: one["count"] for one in site.status().get("blockedByReason", [])}
