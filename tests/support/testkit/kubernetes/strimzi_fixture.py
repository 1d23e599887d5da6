"""Strimzi's part, played by hand: a site whose Kafka cluster is described as Strimzi would describe it.

In: a ``Site`` on an API server that serves Strimzi's definitions, and brokers whose listeners have Strimzi's names.
Out: the same with a Kafka resource, its node pool, pods, certificates and user, which a test changes as Strimzi would.
Users get their passwords in Kafka as well, as Strimzi's user operator gives them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bellwether.adapters.kubernetes.api_client import PODS, POLICIES, SECRETS, Object, Resource
from bellwether.adapters.kubernetes.api_errors import NotFound
from realparts.kafka import KafkaCluster
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.strimzi_objects import CLUSTER, listener
from testkit.processes.sites import POLICY, Site
from waiting import limit

LISTENER_NAMES = {"SECURE": "TLS-9093", "EXTERNAL": "EXTERNAL-9094"}
"""What Strimzi calls the listeners ``tls`` and ``external`` on ports 9093 and 9094."""

LISTENERS = (
    listener("plain", 9092, tls=False, user="scram-sha-512"),
    listener("tls", 9093, user="scram-sha-512"),
    listener("external", 9094, "loadbalancer", user="scram-sha-512"),
)
USER, PASSWORD = "bellwether", "made-by-the-user-operator"
CA = f"{CLUSTER}-cluster-ca-cert"


class StrimziSite:
    """A site and what Strimzi says of its cluster, in ``namespace``; ``version`` is that of Strimzi's API."""

    def __init__(self, site: Site, kafka: KafkaCluster, version: str = "v1") -> None:
        self.site = site
        self.kafka = kafka
        self.namespace = site.namespace
        self.kafkas = strimzi_objects.resource("kafkas", "Kafka", version)
        self.users = strimzi_objects.resource("kafkausers", "KafkaUser", version)
        self.pools = strimzi_objects.resource("kafkanodepools", "KafkaNodePool", version)
        self.rebalances = strimzi_objects.resource("kafkarebalances", "KafkaRebalance", version)

    # What Strimzi makes

    def everything(self, **kafka: Any) -> None:
        """A cluster that is up, with the user that a policy looks for."""
        self.authority()
        self.cluster(**kafka)
        self.user()
        ids = sorted(self.kafka.brokers)
        self.put(self.pools, strimzi_objects.pool("brokers", ids, self.namespace))
        for broker in ids:
            self.put(PODS, strimzi_objects.pod(broker, namespace=self.namespace))

    def cluster(
        self, bootstrap: Mapping[str, str] | None = None, listeners: Sequence[Object] = LISTENERS, **more: Any
    ) -> None:
        """The Kafka resource, as it is from now on; its addresses are the brokers' own."""
        known = self.kafka.security
        assert known is not None, "the cluster was made without sasl_ssl"
        addresses = {"tls": known.bootstrap, "external": self.kafka.external_bootstrap}
        made = strimzi_objects.kafka(
            namespace=self.namespace,
            listeners=listeners,
            bootstrap=addresses if bootstrap is None else bootstrap,
            certificates=[known.ca.read_text()],
            **more,
        )
        self.put(self.kafkas, made)

    def authority(self, **more: str) -> None:
        """The Secret with the cluster's authority, and with others under further keys."""
        known = self.kafka.security
        assert known is not None, "the cluster was made without sasl_ssl"
        self.put(SECRETS, strimzi_objects.secret(CA, self.namespace, ca_crt=known.ca.read_text(), **more))

    def user(self, password: str = PASSWORD, name: str = USER) -> None:
        """A KafkaUser with its Secret, and the same password in Kafka."""
        client = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, info, password.encode())
        for done in client.alter_user_scram_credentials([change]).values():
            done.result(limit(30))
        self.put(SECRETS, strimzi_objects.scram_secret(password, name, self.namespace))
        self.put(self.users, strimzi_objects.kafka_user(name, namespace=self.namespace))

    def annotate(self, name: str, value: str | None) -> None:
        """An annotation of the Kafka resource, or none."""
        self.site.api.merge(self.kafkas, self.namespace, CLUSTER, {"metadata": {"annotations": {name: value}}})

    def rebalance(self, state: str, name: str = "full") -> None:
        """A KafkaRebalance in that state."""
        self.put(self.rebalances, strimzi_objects.rebalance(name, state, self.namespace))

    def put(self, resource: Resource, body: Object) -> None:
        """Let an object be so, its status included."""
        whole = copy.deepcopy(body)
        status = whole.pop("status", None)
        namespace, name = whole["metadata"]["namespace"], whole["metadata"]["name"]
        typed = {"apiVersion": resource.api_version, "kind": resource.kind, **whole}
        standing = self.site.api.find(resource, namespace, name)
        if standing is None:
            self.site.api.create(resource, namespace, typed)
        elif resource is not PODS:
            typed["metadata"] = {**whole["metadata"], "resourceVersion": standing["metadata"]["resourceVersion"]}
            self.site.api.replace(resource, namespace, typed)
        if status is not None:
            self.site.api.merge(resource, namespace, name, {"status": status}, sub="status")

    def take(self, resource: Resource, name: str) -> None:
        """Delete an object, if it is there."""
        with suppress(NotFound):
            self.site.api.delete(resource, self.namespace, name)

    # What people write

    def policy(self, *, strimzi: Object | None = None, **spec: Any) -> None:
        """A policy that names the cluster, and nothing else but what is given."""
        kafka = {"strimzi": {"clusterName": CLUSTER, **(strimzi or {})}}
        self.site.policy(POLICY, kafka=kafka, **spec)

    def smallest_policy(self) -> Object:
        """The smallest policy that acts: a mode and a name; as it was applied."""
        body = {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {"name": POLICY, "namespace": self.site.namespace},
            "spec": {"mode": "Enforce", "kafka": {"strimzi": {"clusterName": CLUSTER}}},
        }
        self.site.server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        return body

    # What people read

    def until_ready(self, seconds: float = 60) -> None:
        """Wait until the policy has settled."""
        self.site.until_reported(seconds=seconds)

    def until_said(self, reason: str, *words: str, seconds: float = 40) -> str:
        """Wait until Ready gives that reason with those words; the message."""
        heard: list[str] = []

        def said() -> bool:
            found, message = self.site.ready()
            heard.append(message)
            return found == reason and all(word in message for word in words)

        self.site.until(said, seconds, f"Ready says {reason} with {words}", self.site.ready)
        return heard[-1]
