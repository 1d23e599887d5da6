"""A policy's words and Secrets as a connection, and whose fault it is where none comes of it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.config.workload_identity import VARIABLE
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import AwsMskIam, Connection, Mechanism, OAuth, Protocol, TokenFile
from bellwether.ports.errors import Terminal, Unauthenticated
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording


class Desk:
    """Secrets of one namespace, and the connection that a policy makes of them."""

    def __init__(self, folder: Path) -> None:
        self.api = MemoryApi()
        self.secrets = SecretReader(self.api, "default", destinations=ANYWHERE)
        self.authority = Authority(folder)
        certificate, key = self.authority.issue("bellwether")
        self.certificate, self.key = certificate.read_bytes(), key.read_bytes()
        self.put("ca", **{"ca.crt": self.authority.path.read_bytes()})
        self.put("pair", **{"tls.crt": self.certificate, "tls.key": self.key})
        self.put("half", **{"tls.crt": self.certificate})
        self.put("twice", **{"tls.crt": self.certificate, "tls.key": self.certificate})
        self.put("swapped", **{"tls.crt": self.key, "tls.key": self.certificate})
        self.put("words", **{"ca.crt": b"hunter2"})
        self.put("tls-user", **{"user.crt": self.certificate, "user.key": self.key})
        words = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="hunter2";'
        self.put("scram-user", password=b"hunter2", **{"sasl.jaas.config": words.encode()})
        self.put("kafka-user", password=b"hunter2\n")

    def put(self, name: str, **data: bytes) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.api.put(SECRETS, {"metadata": {"name": name, "namespace": "default"}, "data": encoded})

    def connect(self, **kafka: Any) -> Connection:
        policy = LeadershipPolicy.read(api_objects.policy(kafka=api_objects.kafka(**kafka)))
        return connection(policy.spec.kafka, self.secrets)

    def refusal(self, **kafka: Any) -> str:
        with pytest.raises(Unauthenticated) as caught:
            self.connect(**kafka)
        assert "hunter2" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "tls")
    yield made
    made.secrets.close()


CA = {"caSecretName": "ca"}
PAIR = {"certificateSecretName": "pair"}


@pytest.mark.parametrize(
    ("kafka", "protocol", "mechanism"),
    [
        pytest.param({}, Protocol.PLAINTEXT, None, id="in the clear"),
        pytest.param({"tls": {}}, Protocol.SSL, None, id="TLS"),
        pytest.param({"tls": {**CA, **PAIR}}, Protocol.SSL, None, id="mutual TLS"),
        pytest.param({"tls": CA, "sasl": api_objects.SASL}, Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512, id="SCRAM"),
        pytest.param(
            {"sasl": {**api_objects.SASL, "mechanism": "PLAIN", "allowPlaintext": True}},
            Protocol.SASL_PLAINTEXT,
            Mechanism.PLAIN,
            id="PLAIN in the clear",
        ),
        pytest.param(
            {"tls": CA, "sasl": api_objects.oauth_sasl()}, Protocol.SASL_SSL, Mechanism.OAUTHBEARER, id="tokens"
        ),
        pytest.param({"tls": CA, "userSecretName": "tls-user"}, Protocol.SSL, None, id="a KafkaUser's pair"),
        pytest.param(
            {"tls": CA, "userSecretName": "scram-user"},
            Protocol.SASL_SSL,
            Mechanism.SCRAM_SHA_512,
            id="a KafkaUser's password",
        ),
    ],
)
def test_what_is_named_decides_how_it_is_connected(
    desk: Desk, kafka: dict[str, Any], protocol: Protocol, mechanism: Mechanism | None
):
    security = desk.connect(**kafka).security
    assert (security.protocol, security.mechanism) == (protocol, mechanism)


def test_a_kafka_user_has_its_own_name_and_password(desk: Desk):
    security = desk.connect(tls=CA, userSecretName="scram-user").security
    assert (security.username, security.password) == ("u", "hunter2")


def test_a_pair_is_written_to_files(desk: Desk):
    user = {"certificateSecretName": "tls-user"}
    for kafka in ({"tls": {**CA, **PAIR}}, {"tls": {**CA, **user}}, {"tls": CA, "userSecretName": "tls-user"}):
        security = desk.connect(**kafka).security
        assert Path(security.cert_file).read_bytes() == desk.certificate
        assert Path(security.key_file).read_bytes() == desk.key
        assert Path(security.ca_file).read_bytes().strip() == desk.authority.path.read_bytes().strip()


def test_a_client_s_secret_and_its_authority_come_from_secrets(desk: Desk):
    found = desk.connect(tls=CA, sasl=api_objects.oauth_sasl(scope="kafka", caSecretName="ca")).security.oauth
    assert isinstance(found, OAuth)
    assert (found.client_id, found.client_secret, found.scope) == ("bellwether", "hunter2", "kafka")
    assert Path(found.ca_file).exists()


def test_every_certificate_of_secret_is_trusted_except_those_of_clients(desk: Desk, tmp_path: Path):
    old = Authority(tmp_path / "old").path.read_bytes()
    clients = {"tls.crt": desk.certificate, "user.crt": desk.certificate}
    desk.put("main-cluster-ca-cert", **{"ca.crt": desk.authority.path.read_bytes(), "ca-2025.crt": old, **clients})
    found = desk.connect(tls={"caSecretName": "main-cluster-ca-cert"}).security
    assert Path(found.ca_file).read_bytes().count(b"BEGIN CERTIFICATE") == 2


def test_the_same_secrets_make_the_same_connection(desk: Desk):
    kafka = {"tls": {**CA, **PAIR}, "sasl": api_objects.SASL}
    assert desk.connect(**kafka) == desk.connect(**kafka)


@pytest.mark.parametrize(
    ("kafka", "said"),
    [
        pytest.param(
            {"tls": {"caSecretName": "nowhere"}},
            "spec.kafka.tls.caSecretName: secret default/nowhere does not exist: create it with key 'ca.crt'",
            id="no Secret with the authority",
        ),
        pytest.param(
            {"tls": {"caSecretName": "words"}},
            "spec.kafka.tls.caSecretName: secret default/words: key 'ca.crt' holds no PEM certificate",
            id="no certificate",
        ),
        pytest.param(
            {"tls": {"caSecretName": "pair"}},
            "spec.kafka.tls.caSecretName: secret default/pair has no key 'ca.crt'; its keys: tls.crt, tls.key",
            id="no authority, but a client's certificate",
        ),
        pytest.param(
            {"tls": {"certificateSecretName": "half"}},
            "spec.kafka.tls.certificateSecretName: secret default/half has no key 'tls.key'; its keys: tls.crt",
            id="half a pair",
        ),
        pytest.param(
            {"tls": {"certificateSecretName": "twice"}},
            "spec.kafka.tls.certificateSecretName: secret default/twice: key 'tls.key' holds no PEM private key: it",
            id="a certificate in place of a key",
        ),
        pytest.param(
            {"tls": {"certificateSecretName": "swapped"}},
            "spec.kafka.tls.certificateSecretName: secret default/swapped: key 'tls.crt' holds no PEM certificate",
            id="a key in place of a certificate",
        ),
        pytest.param(
            {"tls": {}, "sasl": {**api_objects.SASL, "passwordSecretName": "ca"}},
            "spec.kafka.sasl.passwordSecretName: secret default/ca has no key 'password'; its keys: ca.crt",
            id="no such key",
        ),
        pytest.param(
            {"tls": {}, "userSecretName": "ca"},
            "spec.kafka.userSecretName: secret default/ca is not that of a KafkaUser",
            id="no user's Secret",
        ),
        pytest.param(
            {"tls": {}, "sasl": api_objects.oauth_sasl(clientSecretRef={"name": "nowhere", "key": "secret"})},
            "spec.kafka.sasl.oauth.clientSecretRef: secret default/nowhere does not exist: create it with key 'secret'",
            id="no client's secret",
        ),
        pytest.param(
            {"tls": {}, "sasl": api_objects.oauth_sasl(caSecretName="words")},
            "spec.kafka.sasl.oauth.caSecretName: secret default/words: key 'ca.crt' holds no PEM certificate",
            id="no authority for the token endpoint",
        ),
    ],
)
def test_what_is_wrong_is_said_of_its_field(desk: Desk, kafka: dict[str, Any], said: str):
    assert desk.refusal(**kafka).startswith(said)


def test_everything_is_called_by_its_field(desk: Desk):
    plain = desk.connect(tls={**CA, **PAIR}, sasl=api_objects.SASL).security
    assert plain.called("ca_file") == "spec.kafka.tls.caSecretName (ca)"
    assert plain.called("cert_file") == "spec.kafka.tls.certificateSecretName (pair)"
    assert plain.called("password") == "spec.kafka.sasl.passwordSecretName (kafka-user)"
    assert plain.called("verify_hostname") == "spec.kafka.tls.verifyHostname"
    user = desk.connect(tls=CA, userSecretName="tls-user").security
    assert user.called("cert_file") == "spec.kafka.userSecretName (tls-user)"
    oauth = desk.connect(tls=CA, sasl=api_objects.oauth_sasl()).security.oauth
    assert oauth is not None
    assert oauth.called("client_secret") == "spec.kafka.sasl.oauth.clientSecretRef (kafka-user, password)"


def test_each_secret_is_read_once_so_that_pair_belongs_together(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    get = desk.api.get

    def counted(resource: Any, namespace: str, name: str) -> Any:
        asked.append(name)
        return get(resource, namespace, name)

    monkeypatch.setattr(desk.api, "get", counted)
    desk.connect(tls={**CA, **PAIR}, sasl=api_objects.SASL)
    assert sorted(asked) == ["ca", "kafka-user", "pair"]


AWS = {"region": "eu-central-1", "accessKeySecretName": "aws"}


def by_token(**origin: Any) -> dict[str, Any]:
    return {"tls": {} if "workloadIdentity" in origin else CA, "sasl": {"mechanism": "OAUTHBEARER", **origin}}


def test_an_access_key_of_aws_comes_from_a_secret(desk: Desk):
    desk.put("aws", aws_access_key_id=b"AKIA1\n", aws_secret_access_key=b"hunter2", aws_session_token=b"t")
    found = desk.connect(**by_token(awsMskIam=AWS)).security.oauth
    assert isinstance(found, AwsMskIam)
    assert (found.region, found.access_key_id, found.session_token, found.hosts) == (
        "eu-central-1",
        "AKIA1",
        "t",
        ("*",),
    )
    assert found.secret_access_key == "hunter2"
    assert "hunter2" not in repr(found)


def test_half_an_access_key_names_the_other_half(desk: Desk):
    field = "spec.kafka.sasl.awsMskIam.accessKeySecretName: secret default/aws"
    assert_wording(desk.refusal(**by_token(awsMskIam=AWS)))
    desk.put("aws", aws_access_key_id=b"AKIA1")
    assert f"{field} has no key 'aws_secret_access_key'" in desk.refusal(**by_token(awsMskIam=AWS))


def test_a_proxy_has_its_user_from_a_secret(desk: Desk):
    desk.put("proxy", username=b"me", password=b"hunter2")
    proxy = {"url": "http://proxy:3128", "credentialsSecretName": "proxy"}
    found = desk.connect(tls=CA, sasl=api_objects.oauth_sasl(proxy=proxy)).security.oauth
    assert isinstance(found, OAuth)
    assert found.proxy is not None
    assert found.proxy.address == "http://me:hunter2@proxy:3128"
    assert "hunter2" not in repr(found)
    desk.put("proxy", username=b"me:you", password=b"hunter2")
    said = desk.refusal(tls=CA, sasl=api_objects.oauth_sasl(proxy=proxy))
    assert_wording(said)


@pytest.fixture
def identities(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "identities.yaml"
    path.write_text("""workloadIdentities:
      file: {namespaces: [default], hosts: [kafka], tokenFile: /var/run/token, caFile: /ca.pem}
      prom: {namespaces: [default], prometheus: {url: "https://prometheus:9090"}, tokenFile: /var/run/token}
      msk: {namespaces: ["*"], hosts: ["*"], awsMskIam: {region: eu-central-1, proxyUrl: "http://proxy:3128"}}
      other: {namespaces: [other], hosts: ["*"], tokenFile: /var/run/token}
    """)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_pod_identity_is_named_by_policy_and_limited_by_administrator(desk: Desk, identities: Path):
    found = desk.connect(**by_token(workloadIdentity="file")).security
    assert (found.oauth, found.ca_file) == (TokenFile(path="/var/run/token", hosts=("kafka",)), "/ca.pem")
    role = desk.connect(**by_token(workloadIdentity="msk")).security.oauth
    assert isinstance(role, AwsMskIam)
    assert (role.access_key_id, role.proxy and role.proxy.url) == ("", "http://proxy:3128")
    said = desk.refusal(**by_token(workloadIdentity="other"))
    assert_wording(said)
    assert "(prom) is for Prometheus" in desk.refusal(**by_token(workloadIdentity="prom"))


def test_identities_are_followed_without_a_restart(desk: Desk, identities: Path):
    desk.connect(**by_token(workloadIdentity="msk"))
    identities.write_text("workloadIdentities: {}")
    assert "may use none" in desk.refusal(**by_token(workloadIdentity="msk"))


@pytest.mark.parametrize(
    "kafka",
    [
        {"tls": {"verifyHostname": False}},
        {"tls": None},
    ],
)
def test_identity_of_pod_goes_only_to_whom_tls_has_verified(desk: Desk, identities: Path, kafka: dict[str, Any]):
    sasl = {"mechanism": "OAUTHBEARER", "workloadIdentity": "file", "allowPlaintext": True}
    wanted = {name: value for name, value in {**kafka, "sasl": sasl}.items() if value is not None}
    with pytest.raises(Terminal, match="workloadIdentity requires TLS that verifies host names"):
        desk.connect(**wanted)
