"""Kafka's ``client.properties``, which its own tools take with ``--command-config``, as options of a Kafka cluster.

In: a file in Java's format for properties, as Kafka reads it. Out: options by name, as in ``cli.kafka_target``. A key
that is not read is refused, and no value is repeated in a message: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bellwether.kafka_connection import Hidden, Mechanism, Protocol

LIMIT = 64 << 10
"""Bytes of a file."""

KEYS = {
    "bootstrap": "bootstrap.servers",
    "tls_ca": "ssl.truststore.location",
    "tls_cert": "ssl.keystore.location",
    "tls_key": "ssl.keystore.location",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_username": "sasl.jaas.config",
    "sasl_password_file": "sasl.jaas.config",
}
"""The key that an option comes from."""

_HOST_NAMES = "ssl.endpoint.identification.algorithm"
_READ = sorted({*KEYS.values(), "security.protocol", "ssl.truststore.type", "ssl.keystore.type", _HOST_NAMES})
_MODULES = {
    Mechanism.PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    Mechanism.SCRAM_SHA_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_IN_A_FILE = "is not read: write the PEM text to a file, and name it with {}"
_REMEDIES = {
    "ssl.truststore.certificates": _IN_A_FILE.format("ssl.truststore.location"),
    "ssl.keystore.certificate.chain": _IN_A_FILE.format("ssl.keystore.location"),
    "ssl.keystore.key": _IN_A_FILE.format("ssl.keystore.location"),
    "ssl.truststore.password": "is not read: PEM files of certificates have no password; remove it",
    "ssl.keystore.password": "is not read: remove it, and store the PEM key without a passphrase",
    "ssl.key.password": "is not read: remove it, and store the PEM key without a passphrase",
    "sasl.login.callback.handler.class": "is not read: use --oauth-token-endpoint or --aws-msk-region, without a file",
    "sasl.client.callback.handler.class": "is not read: use --oauth-token-endpoint or --aws-msk-region, without a file",
}
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LOGIN = re.compile(
    r"""\s*([\w.$]+)\s+required((?:\s+\w+\s*=\s*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.$-]+))*)\s*;\s*"""
)
_LOGIN_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([\w.$-]+))""")


def read_options(path: Path) -> dict[str, Any]:
    """The options that a file sets. ValueError names the key and the remedy."""
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(data) > LIMIT:
        raise ValueError(f"has more than {LIMIT} bytes, the limit: keep only what Kafka's clients need")
    found: dict[str, str] = {}
    unread: dict[str, None] = {}
    for line, key, value in _entries(data.decode("latin-1")):  # as Java reads it
        if not re.fullmatch(r"[\w.-]{1,80}", key, re.ASCII):  # a file that is none may have anything there
            raise ValueError(f"line {line} is not KEY=VALUE of a Kafka client: correct or remove it")
        if key in _REMEDIES:
            raise ValueError(f"{key} {_REMEDIES[key]}")
        if key not in _READ:
            unread[key] = None
            continue
        if key in found:
            raise ValueError(f"{key} is set twice: remove one")
        found[key] = value
    if unread:
        what = "are not read: remove them" if len(unread) > 1 else "is not read: remove it"
        raise ValueError(f"{', '.join(unread)} {what}; what is read: {', '.join(_READ)}")
    return _options(found)


def _options(found: Mapping[str, str]) -> dict[str, Any]:
    protocol = found.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in list(Protocol):
        raise ValueError(f"security.protocol must be one of {', '.join(Protocol)}")
    secured = Protocol(protocol)
    unused = [] if secured.sasl else sorted(key for key in found if key.startswith("sasl."))
    if unused:
        effect = "are without effect" if len(unused) > 1 else "is without effect"
        raise ValueError(
            f"{', '.join(unused)} {effect} with security.protocol={protocol}: set SASL_SSL or SASL_PLAINTEXT, or remove"
        )
    if found.get(_HOST_NAMES, "https").lower() != "https":
        raise ValueError(f"{_HOST_NAMES} must be https: host names are always verified")
    options: dict[str, Any] = {"bootstrap": found.get("bootstrap.servers"), "tls": secured.tls}
    for store in ("truststore", "keystore"):
        location = found.get(f"ssl.{store}.location")
        if location is None:
            continue
        if found.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
            raise ValueError(f"ssl.{store}.type must be PEM: export the {store} as PEM, and set ssl.{store}.type=PEM")
        if secured.tls:  # else Kafka does not use it either
            options |= dict.fromkeys(("tls_ca",) if store == "truststore" else ("tls_cert", "tls_key"), Path(location))
    return options | (_sasl(found) if secured.sasl else {})


def _sasl(found: Mapping[str, str]) -> dict[str, Any]:
    name = found.get("sasl.mechanism", "GSSAPI")
    if name not in list(_MODULES):
        raise ValueError(
            f"sasl.mechanism must be one of {', '.join(_MODULES)} (unset, Kafka takes GSSAPI): for OAUTHBEARER use"
            " --sasl-mechanism with --oauth-token-endpoint, --oauth-token-file or --aws-msk-region, without a file"
        )
    module, login = _MODULES[Mechanism(name)], _LOGIN.fullmatch(found.get("sasl.jaas.config", ""))
    given = {}
    if login is not None and login[1] == module:
        given = {key: _ESCAPE.sub(_character, a or b or c) for key, a, b, c in _LOGIN_OPTION.findall(login[2])}
    if given.keys() != {"username", "password"}:
        raise ValueError(f'sasl.jaas.config must be: {module} required username="..." password="...";')
    return {"sasl_mechanism": name, "sasl_username": given["username"], "sasl_password": Hidden(given["password"])}


def _entries(text: str) -> Iterator[tuple[int, str, str]]:
    """Numbers of lines, keys and values, as ``java.util.Properties`` reads them."""
    line = ""
    for number, part in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line += part.lstrip(" \t\f")
        if not line or line[0] in "#!":
            line = ""
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:  # it goes on in the next one
            line = line[:-1]
            continue
        entry = _ENTRY.fullmatch(line)
        assert entry is not None  # noqa: S101 - the expression matches every text
        yield number, _unescaped(entry[1]), _unescaped(entry[2]).strip()
        line = ""


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)
