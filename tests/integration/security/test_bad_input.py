"""Every bad credential: a condition and an event that name the field; repaired, it works without a restart."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from realparts.secured import TOKEN_CLIENT, TOKEN_SECRET, Acl
from realparts.tls import Authority
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


class Forwarder:
    """Listens on one address and passes everything on to another; a context manager."""

    def __init__(self, host: str, target: str) -> None:
        """``target`` is host:port."""
        name, _, port = target.rpartition(":")
        self._target = (name, int(port))
        self._listening = socket.create_server((host, 0))
        self.address = f"{host}:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse new connections; open ones go on."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # or the waiting thread takes one more
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listening.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(self._target)
            except OSError:
                inner.close()
                continue
            for source, sink in ((inner, outer), (outer, inner)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


Data = dict[str, str | bytes | Path]
MENDED = ("NotEnforcing", "ClusterClaimed", "NoEvidence", "UpToDate")
"""What a policy that connects reports: all but one that another manages the cluster already."""


@dataclass
class Case:
    """A policy's spec.kafka, its Secrets as they are wrong and as they are right, and what is said of them."""

    kafka: dict[str, Any]
    said: str
    bad: dict[str, Data | None] = field(default_factory=dict)
    good: dict[str, Data] = field(default_factory=dict)
    reason: str = "CredentialsUnusable"

    def named(self, status: Mapping[str, Any]) -> bool:
        """Whether one and the same status says what and why: the next one may say that brokers were slow."""
        ready, connected = condition(status, "Ready"), condition(status, "Connected")
        noted = ready.get("reason") == self.reason and self.said in str(ready.get("message"))
        return noted and (self.reason != "CredentialsUnusable" or connected.get("status") == "False")


@pytest.fixture
def stranger() -> Iterator[Callable[[str], Forwarder]]:
    """The same broker at an address that its certificate does not carry."""
    made: list[Forwarder] = []

    def forward(target: str) -> Forwarder:
        made.append(Forwarder("127.0.0.2", target))
        return made[-1]

    yield forward
    for one in made:
        one.close()


@pytest.mark.slow
def test_each_bad_credential_is_named_and_corrected_without_a_restart(
    site: Site,
    secured: SecuredKafka,
    user: str,
    put: Callable[..., None],
    tmp_path: Path,
    stranger: Callable[[str], Forwarder],
) -> None:
    site.topics()
    for name in (user, "certified", TOKEN_CLIENT):
        secured.grant(name, [Acl("Describe", "Cluster"), Acl("Describe", "Topic", "*")])
    cases = _cases(secured, user, tmp_path, stranger(secured.bootstrap[0]).address)
    put("ca", {"ca.crt": secured.authority.path})
    for name, case in cases.items():
        for secret, data in case.bad.items():
            if data is not None:
                put(f"{name}-{secret}", data)
        site.policy(name, kafka=case.kafka, mode="Observe")
    site.operator()
    for name, case in cases.items():
        site.until(
            lambda name=name, case=case: case.named(site.status(name)),  # type: ignore[misc]
            60,
            f"{name}: {case.reason}: {case.said}",
            lambda name=name: site.status(name),  # type: ignore[misc]
        )
    # The operator posts an event after it has written the status.
    wanted = {(name, case.reason) for name, case in cases.items()}
    site.until(lambda: _warnings(site) >= wanted, 30, "each has its event", lambda: wanted - _warnings(site))
    for name, case in cases.items():
        for secret, data in case.good.items():
            put(f"{name}-{secret}", data)
        if not case.good:
            site.change(name, kafka=_well(name, secured))
            put(f"{name}-user", {"password": f"pw-0-{user}", "sasl.jaas.config": _jaas(user, f"pw-0-{user}")})
    for name in cases:
        site.until(
            lambda name=name: site.ready(name)[0] in MENDED,  # type: ignore[misc]
            120,  # who was refused often is asked every half minute
            f"{name} works",
            lambda name=name: site.ready(name),  # type: ignore[misc]
        )
    everything = site.kubectl("get", "lp,bh,cm,events", "-o", "json") + site.processes[0].log.read_text()
    for secret in ("hunter2", f"pw-0-{user}", TOKEN_SECRET):
        assert secret not in everything
    for name in ("certified", TOKEN_CLIENT):
        secured.revoke(name)


def _warnings(site: Site) -> set[tuple[str, str]]:
    events = json.loads(site.kubectl("get", "events", "-o", "json"))["items"]
    return {(e["involvedObject"]["name"], e["reason"]) for e in events if e["type"] == "Warning"}


def _cases(secured: SecuredKafka, user: str, tmp_path: Path, elsewhere: str) -> dict[str, Case]:
    password = {"password": f"pw-0-{user}"}
    good_ca: Data = {"ca.crt": secured.authority.path}
    certificate, key = secured.authority.issue("certified")
    pair: Data = {"user.crt": certificate.read_bytes(), "user.key": key.read_bytes()}
    _, foreign = Authority(tmp_path / "foreign").issue("certified")
    locked = load_pem_private_key(key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hunter2")
    )

    def scram(name: str, **sasl: Any) -> dict[str, Any]:
        words = {"mechanism": "SCRAM-SHA-512", "username": user}
        words |= {"passwordSecretName": f"{name}-user", **sasl}
        return {"bootstrapServers": secured.bootstrap, "tls": {"caSecretName": "ca"}, "sasl": words}

    def trusting(name: str) -> dict[str, Any]:
        tls = {"caSecretName": f"{name}-ca"}
        return {**scram("trusting"), "tls": tls, "sasl": {**scram(name)["sasl"]}}

    def mutual(name: str) -> dict[str, Any]:
        tls = {"caSecretName": "ca"}
        return {"bootstrapServers": secured.mutual, "tls": tls, "userSecretName": f"{name}-user"}

    def token(name: str, **oauth: Any) -> dict[str, Any]:
        words = {"tokenEndpoint": secured.tokens.url, "clientId": TOKEN_CLIENT, **oauth}
        words |= {"clientSecretRef": {"name": f"{name}-oauth", "key": "secret"}}
        words |= {"caSecretName": f"{name}-login"}
        sasl = {"mechanism": "OAUTHBEARER", "oauth": words}
        return {"bootstrapServers": secured.bootstrap, "tls": {"caSecretName": "ca"}, "sasl": sasl}

    login: Data = {"ca.crt": secured.login_ca}
    other_ca: Data = {"ca.crt": Authority(tmp_path / "other").path}
    in_token = "spec.kafka.sasl.oauth"
    return {
        "wrong-password": Case(
            scram("wrong-password"),
            "check spec.kafka.sasl.username, spec.kafka.sasl.passwordSecretName (wrong-password-user)",
            {"user": {"password": "hunter2"}},
            {"user": {**password}},
        ),
        "no-password": Case(
            scram("no-password"),
            "/no-password-user does not exist: create it with key 'password'",
            {"user": None},
            {"user": {**password}},
        ),
        "no-key": Case(
            scram("no-key"),
            "no-key-user has no key 'password'; its keys: passwort",
            {"user": {"passwort": "hunter2"}},
            {"user": {**password}},
        ),
        "mechanism": Case(
            scram("mechanism", mechanism="PLAIN"), "check spec.kafka.sasl.username", {"user": {"password": "hunter2"}}
        ),
        "wrong-ca": Case(
            trusting("wrong-ca"),
            "does not verify against spec.kafka.tls.caSecretName (wrong-ca-ca)",
            {"ca": other_ca, "user": {**password}},
            {"ca": good_ca},
        ),
        "no-pem": Case(
            trusting("no-pem"),
            "key 'ca.crt' holds no PEM certificate: it is DER or PKCS#12",
            {"ca": {"ca.crt": b"\x30\x82hunter2"}, "user": {**password}},
            {"ca": good_ca},
        ),
        "host-name": Case(
            {**scram("host-name"), "bootstrapServers": [elsewhere]},
            "or set spec.kafka.tls.verifyHostname to false",
            {"user": {**password}},
        ),
        "half-a-pair": Case(
            mutual("half-a-pair"),
            "spec.kafka.userSecretName: secret",
            {"user": {"user.crt": pair["user.crt"]}},
            {"user": pair},
        ),
        "other-key": Case(
            mutual("other-key"),
            "key 'user.key' is not the private key of the certificate",
            {"user": {"user.crt": pair["user.crt"], "user.key": foreign}},
            {"user": pair},
        ),
        "passphrase": Case(
            mutual("passphrase"),
            "is a private key with a passphrase, which is not supported: store it without one",
            {"user": {"user.crt": pair["user.crt"], "user.key": locked}},
            {"user": pair},
        ),
        "no-certificate": Case(
            {**mutual("no-certificate"), "userSecretName": "no-certificate-user"},
            "is not that of a KafkaUser",
            {"user": {"other": "hunter2"}},
            {"user": pair},
        ),
        "token-secret": Case(
            token("token-secret"),
            f"check {in_token}.clientId and {in_token}.clientSecretRef (token-secret-oauth, secret)",
            {"oauth": {"secret": "hunter2"}, "login": login},
            {"oauth": {"secret": TOKEN_SECRET}},
        ),
        "token-ca": Case(
            token("token-ca"),
            f"does not verify against the authorities of {in_token}.caSecretName (token-ca-login)",
            {"oauth": {"secret": TOKEN_SECRET}, "login": other_ca},
            {"login": login},
        ),
        "token-url": Case(
            token("token-url", tokenEndpoint="https://127.0.0.1:1/token"),
            f"{in_token}.tokenEndpoint https://127.0.0.1:1/token cannot be reached",
            {"oauth": {"secret": TOKEN_SECRET}, "login": login},
            reason="ClusterUnreachable",
        ),
    }


def _well(name: str, secured: SecuredKafka) -> dict[str, Any]:
    """A spec.kafka that works, in the place of one that could not."""
    return {
        "bootstrapServers": secured.bootstrap,
        "tls": {"caSecretName": "ca"},
        "sasl": None,
        "userSecretName": f"{name}-user",
    }


def _jaas(name: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{name}" password="{password}";'
