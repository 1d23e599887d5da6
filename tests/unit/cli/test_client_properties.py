"""``--bootstrap`` and ``--command-config``: connections of properties files, and what in them is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bellwether.cli.client_properties import LIMIT
from bellwether.cli.kafka_target import KafkaTarget
from bellwether.cli.main import main
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import AwsMskIam, Connection, Mechanism, OAuth, Protocol, TokenFile
from bellwether.ports.errors import Unauthenticated
from realparts.tls import Authority

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECURED = f"""
# as kafka-topics.sh --command-config takes it
bootstrap.servers = a:1,b:2
security.protocol: SASL_SSL
sasl.mechanism SCRAM-SHA-512
sasl.jaas.config={SCRAM} required \\
    username="anna" \\
    password="open \\\\"sesame\\\\" \\u0021";
ssl.endpoint.identification.algorithm=https
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "client.properties"
    made.write_text(SECURED)
    return made


def connection(file: Path, text: str, bootstrap: str = "a:1") -> Connection:
    file.write_text(text)
    return KafkaTarget(command_config=file, bootstrap=bootstrap).connection()


def test_servers_are_separated_by_commas_and_blanks_forgiven() -> None:
    found = KafkaTarget(bootstrap="a:1, b:2,").connection()
    assert (found.bootstrap, found.security.protocol) == (("a:1", "b:2"), Protocol.PLAINTEXT)


@pytest.mark.parametrize(("servers", "said"), [(None, "bootstrap is empty"), ("kafka", "'kafka' is not host:port")])
def test_servers_that_are_none_are_a_usage_error(servers: str | None, said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        KafkaTarget(bootstrap=servers).connection()


def test_a_file_of_kafkas_tools_names_servers_and_credentials(file: Path) -> None:
    found = KafkaTarget(command_config=file).connection()
    security = found.security
    assert found.bootstrap == ("a:1", "b:2")
    assert (security.protocol, security.mechanism) == (Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512)
    assert (security.username, security.password) == ("anna", 'open "sesame" !')
    assert "sesame" not in repr(found)


def test_pem_stores_are_the_files_of_tls(file: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("client")
    both = tmp_path / "client.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    stores = f"ssl.truststore.type=PEM\nssl.truststore.location={authority.path}\n"
    text = f"{stores}ssl.keystore.type=PEM\nssl.keystore.location={both}\n"
    security = connection(file, f"{text}security.protocol=SSL").security
    assert security.protocol is Protocol.SSL
    assert (security.ca_file, security.cert_file, security.key_file) == (str(authority.path), str(both), str(both))
    assert connection(file, text).security.protocol is Protocol.PLAINTEXT


def test_bootstrap_wins_over_the_servers_of_the_file(file: Path) -> None:
    assert connection(file, SECURED, "c:3").bootstrap == ("c:3",)


TOKENS = """
security.protocol=SASL_SSL
sasl.mechanism=OAUTHBEARER
sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler
sasl.oauthbearer.token.endpoint.url=https://login.example.com/token
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \\
  clientId="bellwether" clientSecret="hunter2" scope="kafka" ssl.truststore.location="CA";
"""
MSK = """
security.protocol=SASL_SSL
sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;
sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler
"""


def test_a_token_endpoint_has_its_client_in_the_login(file: Path, tmp_path: Path) -> None:
    ca = Authority(tmp_path / "tls").path
    security = connection(file, TOKENS.replace("CA", str(ca))).security
    expected = OAuth(
        destinations=ANYWHERE,
        token_endpoint="https://login.example.com/token",
        client_id="bellwether",
        client_secret="hunter2",
        scope="kafka",
        ca_file=str(ca),
    )
    assert (security.mechanism, security.oauth) == (Mechanism.OAUTHBEARER, expected)


def test_tokens_come_from_a_file_as_well(file: Path) -> None:
    text = TOKENS.replace("https://login.example.com/token", "file:///run/token")
    found = connection(file, text.partition(" \\")[0] + ";").security
    assert found.oauth == TokenFile(path="/run/token")


@pytest.mark.parametrize(
    ("server", "environment"), [("b-1.x.c2.kafka.eu-central-1.amazonaws.com:9098", "Mars"), ("b:1", "eu-central-1")]
)
def test_amazon_msk_is_of_the_region_of_its_servers_or_of_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch, server: str, environment: str
) -> None:
    monkeypatch.setenv("AWS_REGION", environment)
    security = connection(file, MSK, server).security
    assert (security.mechanism, security.oauth) == (Mechanism.OAUTHBEARER, AwsMskIam(region="eu-central-1"))


def test_a_renewed_file_counts_for_the_next_connection(file: Path) -> None:
    target = KafkaTarget(command_config=file)
    before = target.connection()
    file.write_text(SECURED.replace("anna", "otto"))
    assert (before.security.username, target.connection().security.username) == ("anna", "otto")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("request.timeout.ms=5000", "request.timeout.ms is not read: remove it; what is read: bootstrap.servers,"),
        ("hunter2 hunter2 =1", "hunter2 is not read: remove it"),
        ("\n\u00e4=hunter2", "line 2 is not KEY=VALUE of a Kafka client"),
        ("\nhunter2", "line 2 is not KEY=VALUE of a Kafka client"),
        ("a=hunter2\nclient.id=hunter2", "a, client.id are not read: remove them; what is read: bootstrap.servers,"),
        ("sasl.jaas.config=hunter2\nsasl.mechanism=PLAIN", "sasl.jaas.config, sasl.mechanism are without effect"),
        ("security.protocol=SSL\nsecurity.protocol=SSL", "security.protocol is set twice: remove one"),
        ("security.protocol=TLS", "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (TOKENS.replace("https:", "http:"), "endpoint.url must begin with https:// or file:// and name no user"),
        (TOKENS.replace("//login", "//me:hunter2@login"), "endpoint.url must begin with https:// or file://"),
        (
            TOKENS.replace('"hunter2"', '""'),
            'required clientId="..." clientSecret="...";, and where needed scope, ssl.',
        ),
        (TOKENS.replace("secured.O", "secured.MyO"), "handler.class must be OAuthBearerLoginCallbackHandler, or unset"),
        (SECURED + "sasl.oauthbearer.token.endpoint.url=https://a", "without effect with sasl.mechanism=SCRAM-SHA-512"),
        (MSK, "no bootstrap server has an AWS region in its name: set AWS_REGION"),
        (MSK.replace("required", "required awsProfileName=x"), "IAMLoginModule required;"),
        (SECURED.replace("username", "user"), f"sasl.jaas.config must be: {SCRAM} required username="),
        (SECURED.replace("scram.S", "plain.S"), f"sasl.jaas.config must be: {SCRAM} required username="),
        ("ssl.truststore.location=/x.jks", "ssl.truststore.type must be PEM: export the truststore as PEM"),
        ("ssl.keystore.type=PKCS12\nssl.keystore.location=/x", "ssl.keystore.type must be PEM"),
        ("ssl.key.password=hunter2", "ssl.key.password is not read: remove it, and store the PEM key without"),
        ("ssl.keystore.key=hunter2", "ssl.keystore.key is not read: write the PEM text to a file"),
        ("ssl.endpoint.identification.algorithm=", "must be https: host names are always verified"),
        ("#" * (LIMIT + 1), f"has more than {LIMIT} bytes, the limit"),
    ],
)
def test_what_is_not_read_is_refused_by_its_key_with_the_remedy(
    file: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    with pytest.raises(Unauthenticated) as caught:
        connection(file, text)
    assert str(caught.value).startswith(f"--command-config {file}: ")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value) or text.startswith("hunter2")
    assert "sesame" not in str(caught.value)


def test_a_command_takes_the_servers_of_the_file(file: Path, tmp_path: Path) -> None:
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    arguments = ["sample", "--command-config", str(file), "--store", str(tmp_path / "store"), "--once"]
    found = CliRunner().invoke(main, arguments)
    assert (found.exit_code, "no broker answered: 127.0.0.1:1" in found.output) == (1, True)


STORES = "security.protocol=SSL\nssl.{0}.type=PEM\nssl.{0}.location="


@pytest.mark.parametrize(
    ("text", "content", "said"),
    [
        (STORES.format("truststore"), "hunter2", "ssl.truststore.location BAD holds no PEM certificate"),
        (STORES.format("keystore"), "", "ssl.keystore.location BAD holds no PEM certificate: it is empty"),
        (STORES.format("truststore"), None, "ssl.truststore.location BAD cannot be read: No such file"),
        (TOKENS, "hunter2", "sasl.jaas.config: ssl.truststore.location BAD holds no PEM certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_by_its_key_and_not_shown(
    file: Path, tmp_path: Path, text: str, content: str | None, said: str
) -> None:
    bad = tmp_path / "bad"
    if content is not None:
        bad.write_text(content)
    with pytest.raises(Unauthenticated) as caught:
        connection(file, text.replace('"CA"', f'"{bad}"') if text == TOKENS else f"{text}{bad}\n")
    assert str(caught.value).startswith(f"--command-config {file}: {said.replace('BAD', str(bad))}")
    assert "hunter2" not in str(caught.value)
