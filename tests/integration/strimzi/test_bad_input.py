"""What a Strimzi cluster may lack: each thing is named, with the remedy, and nothing needs a restart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import SECRETS
from testkit.kubernetes.strimzi_fixture import CA, PASSWORD, USER
from testkit.kubernetes.strimzi_objects import CLUSTER, kafka_user, listener, not_ready, scram_secret
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from testkit.kubernetes.strimzi_fixture import StrimziSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


def test_a_cluster_is_waited_for_from_nothing_to_ready_and_each_lack_is_named(bare: StrimziSite) -> None:
    site = bare.site
    site.topics()
    site.operator()
    bare.policy()
    bare.until_said("StrimziReferenceInvalid", "Kafka my-cluster does not exist", "existing: none")

    bare.cluster(bootstrap={}, conditions=[not_ready("Creating", "Kafka cluster is being deployed")])
    words = ["KafkaUser bellwether does not exist", "/strimzi/ has one to apply", "tls (internal, TLS, scram-sha-512)"]
    bare.until_said("StrimziReferenceInvalid", *words)

    bare.put(bare.users, kafka_user(namespace=site.namespace, ready=False))
    bare.until_said("StrimziNotReady", "KafkaUser bellwether has no Secret yet", "Cluster CA is missing")

    bare.user()
    bare.until_said("StrimziNotReady", "no address of listener tls", "Creating: Kafka cluster is being deployed")

    bare.cluster()
    bare.until_ready()
    assert site.api.find(SECRETS, site.namespace, CA) is None, "the CA is in the status of the Kafka resource"
    assert condition(site.status(), "Connected")["status"] == "True"
    noted = site.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").split()
    for reason in ("StrimziReferenceInvalid", "StrimziNotReady"):
        assert 1 <= noted.count(reason) <= 2, f"{reason} is posted when it is news: {noted}"


def test_a_wrong_name_is_refused_with_the_existing_ones(strimzi: StrimziSite) -> None:
    site = strimzi.site
    strimzi.policy(strimzi={"listener": "tsl"})
    strimzi.until_said("StrimziReferenceInvalid", "no listener tsl", "plain (internal", "external (loadbalancer")
    strimzi.policy(strimzi={"clusterName": "my-clutser"})
    strimzi.until_said("StrimziReferenceInvalid", "Kafka my-clutser does not exist", "existing: my-cluster")
    strimzi.policy(strimzi={"userName": "missing"})
    strimzi.until_said("StrimziReferenceInvalid", "KafkaUser missing does not exist", site.namespace)
    strimzi.policy()
    strimzi.until_ready()


def test_a_cluster_of_another_namespace_has_to_agree(bare: StrimziSite) -> None:
    site, lender = bare.site, bare.namespace
    bare.everything()
    site.topics()
    borrower = site.namespace = site.server.create_namespace(f"{lender}-borrower")
    site.operator()
    bare.policy(strimzi={"namespace": lender})
    bare.until_said(
        "StrimziReferenceInvalid",
        f"Kafka {lender}/my-cluster does not exist, or does not permit",
        "bellwether.dev/policies-from=",
    )
    bare.annotate("bellwether.dev/policies-from", borrower)
    bare.until_ready()
    assert f"{lender}/my-cluster" in site.kubectl("get", "lp")
    bare.annotate("bellwether.dev/policies-from", None)
    site.demote(1)  # so that the loop looks often
    bare.until_said("StrimziReferenceInvalid")


def test_objects_removed_under_a_demotion_are_named_and_it_stays(strimzi: StrimziSite) -> None:
    site = strimzi.site
    before = site.demote_and_wait(3)

    strimzi.take(strimzi.users, USER)
    strimzi.take(SECRETS, USER)
    former(strimzi, "StrimziReferenceInvalid", "KafkaUser bellwether does not exist")
    strimzi.take(strimzi.kafkas, CLUSTER)
    former(strimzi, "StrimziReferenceInvalid", "Kafka my-cluster does not exist")
    assert site.displaced(3, before)
    assert site.settled(), "a connection that works goes on working"

    strimzi.everything()
    site.until(lambda: not condition(site.status(), "CredentialsCurrent"), 40, "it is found again", site.status)
    site.lift_and_wait(3, before)


def test_a_policy_whose_cluster_is_gone_can_be_deleted(strimzi: StrimziSite) -> None:
    site = strimzi.site
    before = site.demote_and_wait(3)
    strimzi.take(strimzi.kafkas, CLUSTER)
    site.delete()
    site.until(site.gone, 60, "the policy is gone")
    site.until_restored(before, 10)  # Kafka itself was still there; a broker may hear of it a moment later


def test_renewed_passwords_and_authorities_are_followed_without_a_restart(strimzi: StrimziSite) -> None:
    site = strimzi.site
    before = site.demote_and_wait(2)
    log = site.processes[0].log
    strimzi.user("renewed-by-the-user-operator")
    # Kafka may refuse the former one before anyone has looked for another.
    site.until(
        lambda: re.search("kafka_reconnecting|reconcile_recovered", log.read_text()), 30, "the password is followed"
    )
    at_first = connected_anew(log.read_text())
    known = strimzi.kafka.security
    assert known is not None
    former_authority = known.ca.read_text()
    strimzi.authority(ca_2026_crt=former_authority)
    site.until(lambda: connected_anew(log.read_text()) > at_first, 30, "the authorities are followed", site.logs)
    strimzi.cluster(bootstrap={"tls": known.bootstrap.split(",")[0], "external": strimzi.kafka.external_bootstrap})
    site.until(lambda: connected_anew(log.read_text()) > at_first + 1, 30, "the addresses are followed", site.logs)
    site.lift_and_wait(2, before)
    assert PASSWORD not in log.read_text()
    assert "renewed-by" not in log.read_text()


def test_a_listener_without_authentication_needs_no_user(bare: StrimziSite) -> None:
    site = bare.site
    plain = [listener("plain", 9092, tls=False)]
    bare.cluster(bootstrap={"plain": bare.kafka.bootstrap}, listeners=plain)
    site.topics()
    bare.policy()
    site.operator()
    bare.until_ready()
    assert (site.status()["strimzi"]["listener"], site.status()["strimzi"]["user"]) == ("plain", "")


def test_a_user_whose_secret_has_another_password_is_refused_by_kafka_and_said_so(bare: StrimziSite) -> None:
    site = bare.site
    bare.everything()
    bare.put(SECRETS, scram_secret("not-the-one", namespace=site.namespace))
    site.topics()
    bare.policy()
    process = site.operator()
    message = bare.until_said("CredentialsUnusable", "bellwether")
    assert "spec.kafka.strimzi.userName" in message
    bare.user()
    bare.until_ready()
    assert "not-the-one" not in process.log.read_text() + site.kubectl("get", "lp,events", "-o", "yaml")


def connected_anew(log: str) -> int:
    """How often the operator has said that it connects again."""
    return len(re.findall("kafka_reconnecting", log))


def former(strimzi: StrimziSite, reason: str, words: str) -> None:
    """Wait until the policy says that it goes on with what it knew, and why."""
    site = strimzi.site
    site.until(
        lambda: words in condition(site.status(), "CredentialsCurrent").get("message", ""),
        40,
        f"the policy says: {words}",
        site.status,
    )
    said = condition(site.status(), "CredentialsCurrent")
    assert (said["status"], said["reason"]) == ("False", reason)
