"""Options into a connection: what implies what, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bellwether.cli.kafka_target import KafkaTarget
from bellwether.cli.main import main
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import AwsMskIam, Connection, HttpProxy, Mechanism, OAuth, Protocol, TokenFile
from bellwether.ports.errors import Unauthenticated
from realparts.tls import Authority


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_text("s3cr3t\r\n")
    return made


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A CA, and a client's certificate with its key."""
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("client")
    return {"ca": authority.path, "certificate": certificate, "key": key}


def made(**options: Any) -> Connection:
    return KafkaTarget(**{"bootstrap": "a:1", **options}).connection()


def test_bootstrap_servers_are_separated_by_commas_and_blanks_forgiven():
    assert made(bootstrap="a:1, b:2,").bootstrap == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        pytest.param({}, Protocol.PLAINTEXT, id="nothing"),
        pytest.param({"tls": True}, Protocol.SSL, id="--tls"),
        pytest.param({"tls_ca": "ca"}, Protocol.SSL, id="--tls-ca implies it"),
        pytest.param({"tls_cert": "certificate", "tls_key": "key"}, Protocol.SSL, id="--tls-cert implies it"),
    ],
)
def test_a_file_for_tls_implies_tls(files: dict[str, Path], options: dict[str, Any], protocol: Protocol):
    known = {name: files.get(value, value) for name, value in options.items()}
    assert made(**known).security.protocol is protocol


@pytest.mark.parametrize(("tls", "protocol"), [(True, Protocol.SASL_SSL), (False, Protocol.SASL_PLAINTEXT)])
def test_a_password_comes_from_a_file_without_its_newline(file: Path, tls: bool, protocol: Protocol):
    security = made(tls=tls, sasl_mechanism="PLAIN", sasl_username="u", sasl_password_file=file).security
    assert (security.protocol, security.mechanism, security.password) == (protocol, Mechanism.PLAIN, "s3cr3t")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"bootstrap": ""}, "bootstrap", id="no server at all"),
        pytest.param({"bootstrap": "kafka"}, "host:port", id="a server without a port"),
        pytest.param({"sasl_mechanism": "PLAIN", "tls": True}, "username", id="SASL without a user"),
    ],
)
def test_what_is_missing_is_a_usage_error_that_names_it(options: dict[str, Any], named: str):
    with pytest.raises(click.UsageError, match=named):
        made(**options)


BY_TOKEN = {
    "tls": True,
    "sasl_mechanism": "OAUTHBEARER",
    "oauth_token_endpoint": "https://login.example.com/token",
    "oauth_client_id": "bellwether",
    "oauth_scope": "kafka",
}


def test_a_token_endpoint_comes_from_options_and_its_secret_from_a_file(file: Path, files: dict[str, Path]):
    security = made(**BY_TOKEN, oauth_client_secret_file=file, oauth_ca=files["ca"]).security
    expected = OAuth(
        destinations=ANYWHERE,
        token_endpoint="https://login.example.com/token",
        client_id="bellwether",
        client_secret="s3cr3t",
        scope="kafka",
        ca_file=str(files["ca"]),
    )
    assert (security.mechanism, security.oauth) == (Mechanism.OAUTHBEARER, expected)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({}, "needs client_secret", id="no secret"),
        pytest.param({"oauth_client_id": None}, "needs client_id", id="no client"),
    ],
)
def test_a_token_that_cannot_be_asked_for_is_a_usage_error(options: dict[str, Any], named: str):
    with pytest.raises(click.UsageError, match=named):
        made(**{**BY_TOKEN, **options})


def test_a_token_endpoint_in_the_clear_is_a_usage_error(file: Path):
    with pytest.raises(click.UsageError, match="https://"):
        made(**{**BY_TOKEN, "oauth_client_secret_file": file, "oauth_token_endpoint": "http://login.example.com"})


def test_tokens_come_from_a_file_or_from_aws_as_well(tmp_path: Path):
    by_file = made(tls=True, sasl_mechanism="OAUTHBEARER", oauth_token_file=tmp_path / "token").security
    assert by_file.oauth == TokenFile(path=str(tmp_path / "token"))
    proxied = {"aws_msk_region": "eu-central-1", "oauth_proxy": "http://proxy:3128"}
    by_aws = made(tls=True, sasl_mechanism="OAUTHBEARER", **proxied).security
    assert by_aws.oauth == AwsMskIam(region="eu-central-1", proxy=HttpProxy(url="http://proxy:3128"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"oauth_token_file": Path("t")}, "Set one of --oauth-token-endpoint, --oauth-token-file and --aws-msk-region"),
        ({"oauth_token_endpoint": None, "aws_msk_region": "Mars"}, "--aws-msk-region 'Mars' is not an AWS region"),
        ({"oauth_proxy": "proxy:3128"}, "--oauth-proxy 'proxy:3128' is not http://host:port"),
        ({"oauth_proxy": "http://me:hunter2@proxy:3128"}, "--oauth-proxy is not http://host:port"),
        ({"sasl_mechanism": "PLAIN"}, "require --sasl-mechanism OAUTHBEARER"),
    ],
)
def test_origins_of_tokens_that_exclude_each_other_or_are_none_are_usage_errors(
    file: Path, options: dict[str, Any], said: str
):
    with pytest.raises(click.UsageError, match=said) as caught:
        made(**{**BY_TOKEN, "oauth_client_secret_file": file, **options})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        pytest.param("tls_ca", "hunter2", r"--tls-ca .* holds no PEM certificate", id="no authority"),
        pytest.param("tls_cert", "", r"--tls-cert .* it is empty", id="an empty certificate"),
        pytest.param("tls_key", "hunter2", r"--tls-key .* holds no PEM private key", id="no key"),
        pytest.param("sasl_password_file", "\n", r"--sasl-password-file .* is empty", id="an empty password"),
        pytest.param("oauth_ca", "hunter2", r"--oauth-ca .* holds no PEM certificate", id="no authority of tokens"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_not_shown(
    tmp_path: Path, file: Path, option: str, content: str, said: str
):
    path = tmp_path / "hunted"
    path.write_text(content)
    with pytest.raises(Unauthenticated, match=said) as caught:
        made(**{**BY_TOKEN, "oauth_client_secret_file": file, option: path})
    assert "hunter2" not in str(caught.value)


def test_files_are_read_again_each_time(file: Path):
    options = {"tls": True, "sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password_file": file}
    before = made(**options)
    file.write_text("renewed")
    after = made(**options)
    assert (before.security.password, after.security.password) == ("s3cr3t", "renewed")
    assert before != after


def test_a_command_names_the_option_whose_file_is_bad(tmp_path: Path):
    bad = tmp_path / "ca.pem"
    bad.write_text("hunter2")
    record = str(tmp_path / "record")
    noted = CliRunner().invoke(main, ["demote", "1", "--record", record, "--bootstrap", "a:1", "--tls-ca", str(bad)])
    assert noted.exit_code == 1
    assert f"Error: --tls-ca {bad} holds no PEM certificate: it is not PEM" in noted.output
    assert "hunter2" not in noted.output
