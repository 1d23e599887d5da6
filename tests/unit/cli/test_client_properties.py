from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bellwether.cli.client_properties import LIMIT
from bellwether.cli.kafka_target import KafkaTarget
from bellwether.cli.main import main
from bellwether.kafka_connection import Connection, Mechanism, Protocol
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


def connection(file: Path, text: str, **options: object) -> Connection:
    file.write_text(text)
    return KafkaTarget(command_config=file, **options).connection()


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
    security = connection(file, f"{text}security.protocol=SSL", bootstrap="a:1").security
    assert security.protocol is Protocol.SSL
    assert (security.ca_file, security.cert_file, security.key_file) == (str(authority.path), str(both), str(both))
    assert connection(file, text, bootstrap="a:1").security.protocol is Protocol.PLAINTEXT


def test_options_win_over_the_file(file: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("other")
    options = {"bootstrap": "c:3", "tls": False, "sasl_username": "otto", "sasl_password_file": password}
    found = KafkaTarget(command_config=file, **options).connection()
    assert found.bootstrap == ("c:3",)
    assert found.security.protocol is Protocol.SASL_PLAINTEXT
    assert (found.security.username, found.security.password) == ("otto", "other")


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
        ("a=hunter2\nclient.id=hunter2", "a, client.id are not read: remove them; what is read: bootstrap.servers,"),
        ("sasl.jaas.config=hunter2\nsasl.mechanism=PLAIN", "sasl.jaas.config, sasl.mechanism are without effect"),
        ("security.protocol=SSL\nsecurity.protocol=SSL", "security.protocol is set twice: remove one"),
        ("security.protocol=TLS", "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "for OAUTHBEARER use --sasl-mechanism"),
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
def test_what_is_not_read_is_refused_by_its_key_with_the_remedy(file: Path, text: str, said: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        connection(file, text, bootstrap="a:1")
    assert str(caught.value).startswith(f"--command-config {file}: ")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value) or text.startswith("hunter2")
    assert "sesame" not in str(caught.value)


def test_a_command_takes_the_servers_of_the_file(file: Path, tmp_path: Path) -> None:
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    arguments = ["sample", "--command-config", str(file), "--store", str(tmp_path / "store"), "--once"]
    found = CliRunner().invoke(main, arguments)
    assert (found.exit_code, "no broker answered: 127.0.0.1:1" in found.output) == (1, True)


def test_a_bad_file_of_a_store_is_named_by_its_key(file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("hunter2")
    file.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={bad}\n")
    found = CliRunner().invoke(main, ["doctor", "--bootstrap", "a:1", "--command-config", str(file)])
    assert found.exit_code == 1
    said = " ".join(found.output.split())
    assert f"--command-config {file}: ssl.truststore.location {bad} holds no PEM certificate" in said
