"""Options into a connection: what implies what, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from bellwether.cli.connecting import connection_from
from bellwether.connections import Connection, Mechanism, Protocol

NOTHING: dict[str, Any] = {
    "bootstrap": "a:1",
    "tls": False,
    "tls_ca": None,
    "tls_cert": None,
    "tls_key": None,
    "sasl_mechanism": None,
    "sasl_username": None,
    "sasl_password_file": None,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_text("s3cr3t\r\n")
    return made


def made(**options: Any) -> Connection:
    return connection_from(**{**NOTHING, **options})


def test_bootstrap_servers_are_separated_by_commas_and_blanks_forgiven():
    assert made(bootstrap="a:1, b:2,").bootstrap == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        pytest.param({}, Protocol.PLAINTEXT, id="nothing"),
        pytest.param({"tls": True}, Protocol.SSL, id="--tls"),
        pytest.param({"tls_ca": Path("ca")}, Protocol.SSL, id="--tls-ca implies it"),
        pytest.param({"tls_cert": Path("c"), "tls_key": Path("k")}, Protocol.SSL, id="--tls-cert implies it"),
    ],
)
def test_a_file_for_tls_implies_tls(options: dict[str, Any], protocol: Protocol):
    assert made(**options).security.protocol is protocol


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
