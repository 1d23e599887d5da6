"""How a policy that names a Strimzi cluster connects: what is found, and what the policy says itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import PODS, SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection, sides, surroundings
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka
from bellwether.core.model.broker_identity import Pod
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Mechanism, Protocol
from bellwether.ports.errors import Terminal, Unauthenticated
from realparts.tls import Authority
from testkit.kubernetes import api_objects, strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.kubernetes.strimzi_objects import KAFKAS, USERS, kafka, kafka_user, listener
from testkit.messages import assert_wording
from testkit.values.security_settings import PLAINTEXT

INSIDE = "my-cluster-kafka-bootstrap.default.svc:9093"
SASL = {"mechanism": "PLAIN", "username": "me", "passwordSecretName": "mine"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def api(authority: Authority) -> MemoryApi:
    made = MemoryApi()
    strimzi_objects.put_cluster(made, authority.path.read_text(), "hunter2")
    made.put(SECRETS, strimzi_objects.secret("mine", password="my own"))
    return made


@pytest.fixture
def secrets(api: MemoryApi) -> Iterator[SecretReader]:
    with SecretReader(api, "default", destinations=ANYWHERE) as reader:
        yield reader


def wanted(tls: dict[str, Any] | None = None, sasl: dict[str, Any] | None = None, **fields: Any) -> Kafka:
    return Kafka.model_validate(api_objects.strimzi(tls, sasl, **fields))


def test_a_user_with_a_password_connects_over_tls(secrets: SecretReader, authority: Authority):
    made = connection(wanted(), secrets)
    security = made.security
    assert (made.bootstrap, made.client_id) == ((INSIDE,), "bellwether")
    assert (security.protocol, security.mechanism) == (Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512)
    assert (security.username, security.password) == ("bellwether", "hunter2")
    assert Path(security.ca_file).read_text().strip() == authority.path.read_text().strip()
    assert security.called("username") == "spec.kafka.strimzi.userName (bellwether)"
    assert_wording(security.called("password"))
    assert security.called("ca_file") == "spec.kafka.strimzi (my-cluster-cluster-ca-cert)"


def test_a_user_with_a_certificate_connects_with_that(secrets: SecretReader, api: MemoryApi, authority: Authority):
    certificate, key = authority.issue("reader")
    api.put(KAFKAS, kafka(listeners=[listener("tls", 9093, user="tls")]))
    api.put(USERS, kafka_user(kind="tls"))
    api.put(SECRETS, strimzi_objects.secret("bellwether", user_crt=certificate.read_text(), user_key=key.read_text()))
    security = connection(wanted(), secrets).security
    assert (security.protocol, security.mechanism, security.username) == (Protocol.SSL, None, "")
    assert Path(security.cert_file).read_text() == certificate.read_text()


def test_without_authentication_no_user_is_needed(secrets: SecretReader, api: MemoryApi):
    api.delete(USERS, "default", "bellwether")
    assert connection(wanted(), secrets) == Connection(("my-cluster-kafka-bootstrap.default.svc:9092",), PLAINTEXT)


def test_what_the_policy_says_itself_goes_before_what_is_found(secrets: SecretReader, api: MemoryApi, tmp_path: Path):
    own = Authority(tmp_path / "own").path.read_text()
    api.put(SECRETS, strimzi_objects.secret("corporate", ca_crt=own))
    api.put(KAFKAS, kafka(listeners=[listener("tokens", 9095, user="custom")]))
    tls = {"caSecretName": "corporate", "verifyHostname": False}
    security = connection(wanted(tls, SASL, listener="tokens"), secrets).security
    assert (security.protocol, security.mechanism, security.username) == (Protocol.SASL_SSL, Mechanism.PLAIN, "me")
    assert Path(security.ca_file).read_text().strip() == own.strip()
    assert not security.verify_hostname
    assert security.called("password") == "spec.kafka.sasl.passwordSecretName (mine)"


def test_password_of_policys_own_is_not_sent_in_clear(secrets: SecretReader, api: MemoryApi):
    api.put(KAFKAS, kafka(listeners=[listener("bare", 9095, tls=False, user="custom")]))
    with pytest.raises(Terminal, match=r"spec\.kafka\.strimzi\.listener: bare .* without TLS"):
        connection(wanted({}, SASL, listener="bare"), secrets)
    allowed = connection(wanted({}, {**SASL, "allowPlaintext": True}, listener="bare"), secrets)
    assert allowed.security.protocol is Protocol.SASL_PLAINTEXT


def test_a_listener_that_is_named_may_do_without_tls(secrets: SecretReader, api: MemoryApi):
    api.put(KAFKAS, kafka(listeners=[listener("bare", 9095, tls=False, user="scram-sha-512")]))
    assert connection(wanted(listener="bare"), secrets).security.protocol is Protocol.SASL_PLAINTEXT


def test_nothing_new_is_no_other_connection(secrets: SecretReader, api: MemoryApi):
    before = connection(wanted(), secrets)
    assert connection(wanted(), secrets) == before
    api.put(SECRETS, strimzi_objects.scram_secret("renewed"))
    assert connection(wanted(), secrets) != before


def test_an_address_that_is_none_is_refused(secrets: SecretReader, api: MemoryApi):
    api.put(KAFKAS, kafka(bootstrap={"tls": "nowhere"}))
    with pytest.raises(Terminal, match=r"spec\.kafka: bootstrap address 'nowhere'"):
        connection(wanted(), secrets)


def test_a_missing_secret_is_a_matter_of_credentials(secrets: SecretReader, api: MemoryApi):
    api.delete(SECRETS, "default", "bellwether")
    with pytest.raises(Unauthenticated, match="KafkaUser bellwether: secret default/bellwether does not exist"):
        connection(wanted(), secrets)


def test_the_surroundings_come_with_the_connection(secrets: SecretReader, api: MemoryApi):
    api.put(PODS, strimzi_objects.pod(1))
    made, strimzi = surroundings(wanted(), secrets)
    assert made == connection(wanted(), secrets)
    assert strimzi is not None
    assert (strimzi.name, strimzi.pods) == ("my-cluster", {1: Pod("my-cluster-brokers-1")})
    plain = Kafka.model_validate(api_objects.kafka())
    assert surroundings(plain, secrets) == (connection(plain, secrets), None)


def test_probers_learn_what_clients_outside_use(secrets: SecretReader):
    found = sides(wanted(), secrets, ("EXTERNAL",), ())
    assert found.connection == connection(wanted(), secrets)
    assert (found.listeners, found.outside) == (("EXTERNAL-9094",), ("my-cluster-kafka-bootstrap.default.svc:9094",))


def test_probers_do_as_the_policy_says_where_it_does(secrets: SecretReader):
    own = wanted({}, SASL, listener="tls")
    found = sides(own, secrets, ("tls",), ("outside.example:9094",))
    assert (found.listeners, found.outside) == (("TLS-9093",), ("outside.example:9094",))
    plain = sides(Kafka.model_validate(api_objects.kafka()), secrets, ("EXTERNAL",), ())
    assert (plain.listeners, plain.outside) == (("EXTERNAL",), ())


def test_a_cluster_without_an_outside_leaves_the_policys_word(secrets: SecretReader, api: MemoryApi):
    api.put(KAFKAS, kafka(listeners=[listener("tls", 9093, user="scram-sha-512")]))
    assert sides(wanted(), secrets, ("EXTERNAL",), ()).listeners == ("EXTERNAL",)
