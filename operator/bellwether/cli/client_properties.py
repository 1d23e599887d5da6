"""Kafka's ``client.properties``, which its own tools take with ``--command-config``, as TLS and SASL of a connection.

In: a file in Java's format for properties, as Kafka reads it. Out: bootstrap servers and ``Security``. A key that is
not read is refused, and no value is repeated in a message: it may be a secret. Called by ``cli.kafka_target``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bellwether.adapters import pem
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import (
    AwsMskIam,
    Mechanism,
    OAuth,
    Protocol,
    Security,
    TokenFile,
    TokenOrigin,
)

LIMIT = 64 << 10
"""Bytes of a file."""

_HOST_NAMES = "ssl.endpoint.identification.algorithm"
_LOGIN_KEY = "sasl.jaas.config"
_TOKENS = "sasl.oauthbearer.token.endpoint.url"
_HANDLERS = {
    "sasl.login.callback.handler.class": "OAuthBearerLoginCallbackHandler",
    "sasl.client.callback.handler.class": "IAMClientCallbackHandler",
}
"""Classes that Java needs for what the mechanism says already."""
_STORES = [f"ssl.{store}.{what}" for store in ("truststore", "keystore") for what in ("location", "type")]
_READ = sorted(
    ["bootstrap.servers", "security.protocol", "sasl.mechanism", _LOGIN_KEY, _TOKENS, *_HANDLERS, *_STORES, _HOST_NAMES]
)
_AWS = "AWS_MSK_IAM"
_KAFKA = "org.apache.kafka.common.security"
_MODULES = {
    Mechanism.PLAIN: f"{_KAFKA}.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: f"{_KAFKA}.scram.ScramLoginModule",
    Mechanism.SCRAM_SHA_512: f"{_KAFKA}.scram.ScramLoginModule",
    Mechanism.OAUTHBEARER: f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule",
    _AWS: "software.amazon.msk.auth.iam.IAMLoginModule",
}
_AWS_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
_IN_A_FILE = "is not read: write the PEM text to a file, and name it with {}"
_REMEDIES = {
    "ssl.truststore.certificates": _IN_A_FILE.format("ssl.truststore.location"),
    "ssl.keystore.certificate.chain": _IN_A_FILE.format("ssl.keystore.location"),
    "ssl.keystore.key": _IN_A_FILE.format("ssl.keystore.location"),
    "ssl.truststore.password": "is not read: PEM files of certificates have no password; remove it",
    "ssl.keystore.password": "is not read: remove it, and store the PEM key without a passphrase",
    "ssl.key.password": "is not read: remove it, and store the PEM key without a passphrase",
}
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LOGIN = re.compile(
    r"""\s*([\w.$]+)\s+required((?:\s+[\w.]+\s*=\s*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.$-]+))*)\s*;\s*"""
)
_LOGIN_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([\w.$-]+))""")


@dataclass(frozen=True)
class ClientProperties:
    """The keys of a file; without a file there are none. ``called``: how messages name the file."""

    found: Mapping[str, str] = field(default_factory=dict, repr=False)
    called: str = ""

    @classmethod
    def read(cls, path: Path | None) -> ClientProperties:
        """Raises ValueError with the key and the remedy."""
        return cls() if path is None else cls(_keys(path), f"--command-config {path}: ")

    @property
    def servers(self) -> str:
        """Bootstrap servers; empty if the file has none."""
        return self.found.get("bootstrap.servers", "")

    def security(self, servers: str) -> Security:
        """TLS and SASL for these servers. ValueError names the key and the remedy."""
        found = self.found
        named = found.get("security.protocol", "PLAINTEXT").upper()
        if named not in list(Protocol):
            raise ValueError(f"security.protocol must be one of {', '.join(Protocol)}")
        protocol = Protocol(named)
        unused = [] if protocol.sasl else sorted(key for key in found if key.startswith("sasl."))
        if unused:
            effect = f"{'are' if len(unused) > 1 else 'is'} without effect with security.protocol={named}"
            raise ValueError(f"{', '.join(unused)} {effect}: set SASL_SSL or SASL_PLAINTEXT, or remove")
        if found.get(_HOST_NAMES, "https").lower() != "https":
            raise ValueError(f"{_HOST_NAMES} must be https: host names are always verified")
        trusted, own = (self._store(f"ssl.{store}", used=protocol.tls) for store in ("truststore", "keystore"))
        names = {
            "ca_file": f"ssl.truststore.location {trusted}".strip(),
            "cert_file": f"ssl.keystore.location {own}".strip(),
            "key_file": f"ssl.keystore.location {own}".strip(),
            "mechanism": "sasl.mechanism",
            "username": _LOGIN_KEY,
            "password": _LOGIN_KEY,
        }
        return Security(
            destinations=ANYWHERE,
            protocol=protocol,
            ca_file=_checked(names["ca_file"], trusted, pem.validities),
            cert_file=_checked(names["cert_file"], own, pem.validities),
            key_file=_checked(names["key_file"], own, pem.check_key),
            names=tuple((name, f"{self.called}{key}") for name, key in names.items()),
            **(self._sasl(servers) if protocol.sasl else {}),
        )

    def _store(self, store: str, *, used: bool) -> str:
        """The file of a store; empty if there is none, or if Kafka does not use it either."""
        location = self.found.get(f"{store}.location", "")
        if location and self.found.get(f"{store}.type", "JKS").upper() != "PEM":
            what = store.removeprefix("ssl.")
            raise ValueError(f"{store}.type must be PEM: export the {what} as PEM, and set {store}.type=PEM")
        return location if used else ""

    def _sasl(self, servers: str) -> dict[str, Any]:
        name = self.found.get("sasl.mechanism", "GSSAPI")
        if name not in _MODULES:
            raise ValueError(f"sasl.mechanism must be one of {', '.join(_MODULES)} (unset, Kafka takes GSSAPI)")
        for key, handler in _HANDLERS.items():
            if self.found.get(key, handler).rpartition(".")[2] != handler:
                raise ValueError(f"{key} must be {handler}, or unset: other classes are not called")
        if name == _AWS:
            self._login(name)
            return {"mechanism": Mechanism.OAUTHBEARER, "oauth": self._aws(servers)}
        if name == Mechanism.OAUTHBEARER:
            return {"mechanism": name, "oauth": self._tokens()}
        if _TOKENS in self.found:
            raise ValueError(f"{_TOKENS} is without effect with sasl.mechanism={name}: remove it")
        return {"mechanism": name, **self._login(name, "username", "password")}

    def _aws(self, servers: str) -> TokenOrigin:
        of_host = _AWS_HOST.search(servers)
        region = of_host[1] if of_host else os.environ.get("AWS_REGION", "")
        if not region:
            raise ValueError("no bootstrap server has an AWS region in its name: set AWS_REGION")
        return AwsMskIam(region=region, names=(("region", "AWS_REGION, or that of the bootstrap servers,"),))

    def _tokens(self) -> TokenOrigin:
        url = urlsplit(self.found.get(_TOKENS, ""))
        if url.scheme == "file":
            self._login(Mechanism.OAUTHBEARER)
            return TokenFile(path=url.path, names=(("path", f"{self.called}{_TOKENS}"),))
        if url.scheme != "https" or "@" in url.netloc:
            raise ValueError(f"{_TOKENS} must begin with https:// or file:// and name no user: secrets travel to it")
        further = ("scope", "ssl.truststore.location", "ssl.truststore.type")
        login = self._login(Mechanism.OAUTHBEARER, "clientId", "clientSecret", further=further)
        ca_file, ca_name = login.get("ssl.truststore.location", ""), f"{_LOGIN_KEY}: ssl.truststore.location"
        called = {
            "token_endpoint": _TOKENS,
            "ca_file": ca_name,
            **dict.fromkeys(("client_id", "client_secret", "scope"), _LOGIN_KEY),
        }
        return OAuth(
            destinations=ANYWHERE,
            token_endpoint=url.geturl(),
            client_id=login["clientId"],
            client_secret=login["clientSecret"],
            scope=login.get("scope", ""),
            ca_file=_checked(f"{ca_name} {ca_file}", ca_file, pem.validities),
            names=tuple((name, f"{self.called}{key}") for name, key in called.items()),
        )

    def _login(self, mechanism: str, *wanted: str, further: tuple[str, ...] = ()) -> dict[str, str]:
        """The options of the login module. Raises ValueError unless those that are wanted are there, and no others."""
        module, login = _MODULES[mechanism], _LOGIN.fullmatch(self.found.get(_LOGIN_KEY, ""))
        given = {} if login is None else _login_options(login[2])
        if (
            login is None
            or login[1] != module
            or not {*wanted} <= {k for k in given if given[k]} <= {*wanted, *further}
        ):
            options = "".join(f' {name}="..."' for name in wanted)
            more = f", and where needed {', '.join(further)}" if further else ""
            raise ValueError(f"{_LOGIN_KEY} must be: {module} required{options};{more}")
        return given


def _login_options(text: str) -> dict[str, str]:
    return {key: _ESCAPE.sub(_character, a or b or c) for key, a, b, c in _LOGIN_OPTION.findall(text)}


def _checked(name: str, path: str, check: Callable[[bytes], object]) -> str:
    """The path of a file that passes the check; empty without a path. Raises ValueError."""
    try:
        if path:
            check(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    return path


def _keys(path: Path) -> dict[str, str]:
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
        unknown = key not in _READ and key not in _REMEDIES
        # a file that is none may have anything there, also a password
        if not re.fullmatch(r"[\w.-]{1,80}", key, re.ASCII) or (unknown and not value):
            raise ValueError(f"line {line} is not KEY=VALUE of a Kafka client: correct or remove it")
        if key in _REMEDIES:
            raise ValueError(f"{key} {_REMEDIES[key]}")
        if unknown:
            unread[key] = None
            continue
        if key in found:
            raise ValueError(f"{key} is set twice: remove one")
        found[key] = value
    if unread:
        what = "are not read: remove them" if len(unread) > 1 else "is not read: remove it"
        raise ValueError(f"{', '.join(unread)} {what}; what is read: {', '.join(_READ)}")
    return found


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
