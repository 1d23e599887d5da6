"""No secret comes out anywhere: distinctive ones are planted everywhere, all paths are taken, and all is searched."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from realparts.kubernetes_binaries import kubectl
from realparts.secured import TOKEN_CLIENT, TOKEN_SECRET, Acl
from testkit.loads import load_configs
from testkit.values.security_settings import client_properties
from waiting import limit

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

ALL = (Acl("Alter", "Cluster"), Acl("DescribeConfigs", "Cluster"), Acl("Describe", "Topic", "*"))
LEVEL = ("--log-level", "debug")


class Canaries:
    """Secrets that occur nowhere else, and all output of all processes."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}
        self.heard: dict[str, str] = {}

    def plant(self, what: str, text: str | None = None) -> str:
        """A secret of that kind; ``text`` where it was not made here."""
        secret = text or f"canary-{what.replace(' ', '-')}-{uuid.uuid4().hex}"
        self.planted[what] = secret
        return secret

    def hear(self, where: str, text: str) -> None:
        """Something that came out."""
        self.heard[f"{where} #{len(self.heard)}"] = text

    def found(self) -> list[str]:
        """Which secret is where."""
        return [
            f"{what} in {where}"
            for where, text in self.heard.items()
            for what, secret in self.planted.items()
            if any(form in text for form in _forms(secret))
        ]


def _forms(secret: str) -> set[str]:
    """A secret as it is, escaped as Python, JSON and URLs do it, and in base64 of something that it is a part of."""
    inner = set()
    for before in range(3):
        encoded = base64.b64encode(b"." * before + secret.encode()).decode()
        inner.add(encoded[(8 * before + 5) // 6 : len(encoded) - 4])
    return {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe=""), *inner}


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


def test_a_planted_secret_is_found_wherever_it_is() -> None:
    birds = Canaries()
    secret = birds.plant("password")
    assert birds.found() == []
    birds.hear("a log", f"... {secret} ...")
    birds.hear("another", "nothing")
    for before in range(5):
        birds.hear("an object", base64.b64encode(b"x" * before + secret.encode() + b"y").decode())
    assert len(birds.found()) == 6


def test_no_secret_comes_out_of_anything(
    site: Site,
    secured: SecuredKafka,
    user: str,
    put: Callable[..., None],
    canaries: Canaries,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines: set[str] = set()
    good = canaries.plant("password")
    secured.user(user, good)
    secured.grant(user, ALL)
    certificate, key = secured.authority.issue("certified")
    canaries.plant("private key", key.read_text().splitlines()[1])
    canaries.plant("client secret", TOKEN_SECRET)
    locked = _locked(key, canaries.plant("passphrase"))
    canaries.plant("locked key", locked.decode().splitlines()[1])
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
    put("ca", {"ca.crt": secured.authority.path, "ca.password": canaries.plant("truststore password")})
    put("good", {"password": good, "sasl.jaas.config": jaas.format(user, good)})
    bad = canaries.plant("wrong password")
    put("wrong", {"password": bad, "sasl.jaas.config": jaas.format(user, bad)})
    put("malformed", {"user.crt": canaries.plant("malformed certificate"), "user.key": canaries.plant("bad key")})
    put("locked", {"user.crt": certificate, "user.key": locked, "user.password": canaries.plant("user password")})
    put("jaas", {"sasl.jaas.config": canaries.plant("jaas words")})
    put("oauth", {"secret": TOKEN_SECRET, "wrong": canaries.plant("wrong client secret"), "ca.crt": secured.login_ca})
    expired, expired_key = secured.authority.issue("certified", expired=True)
    canaries.plant("expired key", expired_key.read_text().splitlines()[1])
    put("expired", {"user.crt": expired, "user.key": expired_key})

    tls = {"caSecretName": "ca"}
    policy: dict[str, Any] = {"bootstrapServers": secured.bootstrap, "tls": tls, "userSecretName": "good"}
    site.topics()
    before = site.orders()
    listener = {"listeners": ["SECURE"], "vantages": ["a"]}
    load = load_configs.options(tmp_path, str(tmp_path / "store"))
    rebalance = {"schedule": "* * * * *"}
    site.policy(kafka=policy, detection={"externalReachability": listener}, rebalance=rebalance)
    for name in ("wrong", "malformed", "locked", "jaas"):
        site.policy(name, kafka={**policy, "userSecretName": name}, mode="Observe")
    site.policy("expired", kafka=_mutual(secured, tls), mode="Observe")
    for name, key_name in (("token", "secret"), ("wrong-token", "wrong")):
        site.policy(name, kafka=_by_token(secured, tls, key_name), mode="Observe")
    site.policy("away", kafka={**policy, "bootstrapServers": [f"127.0.0.1:{site.free_port()}"]}, mode="Observe")
    port = site.free_port()
    site.operator("--metrics-port", str(port), *load, *LEVEL)
    site.prober("a")
    probe = [sys.executable, "-m", "bellwether", "probe"]
    here = ["--policy", "main", "-n", site.namespace]
    site.start("replication", [*probe, "replication", *here, *LEVEL])
    site.start("sampler", [sys.executable, "-m", "bellwether", "sample", *here, *load, "--period", "2", *LEVEL])
    trace = tmp_path / "trace.jsonl"
    record = [sys.executable, "-m", "bellwether", "record", *here, "--output-file", str(trace), "--duration", "60s"]
    recorder = site.start("record", record)
    site.until_reported()
    site.until(lambda: site.ready("wrong")[0] == "CredentialsUnusable", 60, "a wrong password is refused")
    site.until(lambda: site.ready("wrong-token")[0] == "CredentialsUnusable", 60, "so is a client")
    site.until(lambda: "expired" in site.ready("expired")[1], 60, "and a certificate", lambda: site.ready("expired"))
    for process in site.processes:
        lines.update(_proc(process.pid))

    # Through failures and back, with the good ones in use.
    site.demote(1)
    site.until_demoted(1, before)
    again = canaries.plant("renewed password")
    secured.user(user, again)
    site.until(lambda: site.ready()[0] == "CredentialsUnusable", 40, "the former password is refused", site.ready)
    put("good", {"password": again, "sasl.jaas.config": jaas.format(user, again)})
    site.until(site.settled, 40, "the renewed one is taken", site.ready)
    secured.revoke(user)
    site.until(lambda: site.ready()[0] == "AclMissing", 40, "what it may is taken away", site.ready)
    secured.grant(user, ALL)
    site.until(site.settled, 60, "and given back", site.ready)
    site.lift_and_wait(1, before)
    for process in site.processes:
        lines.update(_proc(process.pid))

    # What people run.
    nonsense = tmp_path / "nonsense"
    nonsense.write_text(canaries.plant("nonsense"))
    for name, options in _command_lines(secured, user, again, tmp_path, nonsense, here):
        done = _run(site, [sys.executable, "-X", "dev", "-m", "bellwether", *options], lines)
        canaries.hear(name, done)
    site.until(lambda: not recorder.alive, 120, "the recording ends")
    canaries.hear("trace", trace.read_text(errors="replace"))
    canaries.hear("metrics", site.scrape(port))
    for process in site.processes:
        process.stop()
        canaries.hear(f"log of {process.name}", process.log.read_text(errors="replace"))
    for given in secured.tokens.given:
        canaries.plant(f"token {len(canaries.planted)}", given.rpartition(".")[2])
    canaries.hear("/proc", "\n".join(lines))
    canaries.hear("files that were written", "\n".join(_written(tmp_path / "store", tmp_path / "undo")))
    canaries.hear("the API", _everything(site))
    out, err = capfd.readouterr()
    canaries.hear("the terminal", out + err)

    logs = [text for where, text in canaries.heard.items() if where.startswith("log of operator")]
    assert "refused user" in logs[0], "failures were logged"
    assert len(canaries.heard) > 12
    assert canaries.found() == []


def _mutual(secured: SecuredKafka, tls: dict[str, Any]) -> dict[str, Any]:
    return {"bootstrapServers": secured.mutual, "tls": tls, "userSecretName": "expired"}


def _by_token(secured: SecuredKafka, tls: dict[str, Any], key: str) -> dict[str, Any]:
    oauth = {
        "tokenEndpoint": secured.tokens.url,
        "clientId": TOKEN_CLIENT,
        "clientSecretRef": {"name": "oauth", "key": key},
        "caSecretName": "oauth",
    }
    sasl = {"mechanism": "OAUTHBEARER", "oauth": oauth}
    return {"bootstrapServers": secured.bootstrap, "tls": tls, "sasl": sasl}


OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def _command_lines(
    secured: SecuredKafka, user: str, password: str, tmp_path: Path, nonsense: Path, here: list[str]
) -> list[tuple[str, list[str]]]:
    servers, bad, ca = ",".join(secured.bootstrap), nonsense.read_text(), secured.authority.path
    files = iter(tmp_path / f"{number}.properties" for number in range(9))

    def scram(secret: str, ca: Path = ca, more: str = "") -> list[str]:
        file = client_properties(next(files), user, secret, ca)
        file.write_text(file.read_text() + more)
        return ["--bootstrap", servers, "--command-config", str(file)]

    def token(url: str, client: str) -> list[str]:
        more = f"sasl.oauthbearer.token.endpoint.url={url}\nsasl.jaas.config={OAUTH_LOGIN} required{client};\n"
        (file := next(files)).write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={ca}\n{more}"
        )
        return ["--bootstrap", servers, "--command-config", str(file)]

    client = f' clientId="{TOKEN_CLIENT}" clientSecret="{bad}" ssl.truststore.location="{secured.login_ca}"'
    key = f"ssl.keystore.type=PEM\nssl.keystore.location={nonsense}\n"
    demote = ["demote", "1", "--record", str(tmp_path / "undo"), "--dry-run"]
    sample = ["sample", "--once", "--log-level", "debug", "--store", str(tmp_path / "store")]
    policy, namespace = here[1], here[3]
    return [
        ("demote", [*demote, *scram(password)]),
        ("demote, wrong password", [*demote, *scram(bad)]),
        ("demote, wrong authority", [*demote, *scram(password, nonsense)]),
        ("demote, wrong key", [*demote, *scram(password, more=key)]),
        ("demote, no properties", [*demote, "--bootstrap", servers, "--command-config", str(nonsense)]),
        ("demote, unreachable", [*demote, *scram(password), "--bootstrap", "127.0.0.1:1"]),
        ("sample, wrong client", [*sample, *token(secured.tokens.url, client)]),
        ("sample, wrong token", [*sample, *token(f"file://{nonsense}", "")]),
        ("sample", [*sample, *scram(password)]),
        ("probe replication", ["probe", "replication", "--once", "--log-level", "debug", *here]),
        ("probe reachability", ["probe", "reachability", "--once", "--log-level", "debug", *here]),
        ("probe reachability, wrong", ["probe", "reachability", "--once", "--policy", "wrong", *here[2:]]),
        ("probe reachability, locked", ["probe", "reachability", "--once", "--policy", "locked", *here[2:]]),
        ("explain", ["explain", "1", "--policy", policy, "-n", namespace]),
        ("undo-record", ["undo-record", "export", "--policy", policy, "-n", namespace]),
    ]


def _run(site: Site, line: list[str], lines: set[str]) -> str:
    """What a command prints, with its arguments and environment looked at meanwhile."""
    environment = {**os.environ, "KUBECONFIG": str(site.server.kubeconfig)}
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        time.sleep(0.3)
        lines.update(_proc(process.pid))
        return process.communicate(timeout=limit(120))[0]


def _proc(pid: int) -> Iterator[str]:
    """Arguments and environment of a process and of its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for name in ("cmdline", "environ"):
            yield Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b"\n").decode(errors="replace")
    except OSError:
        return
    for child in children:
        yield from _proc(int(child))


def _locked(key: Path, passphrase: str) -> bytes:
    return load_pem_private_key(key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )


def _written(*places: Path) -> Iterator[str]:
    for place in places:
        for path in [place, *place.rglob("*")] if place.is_dir() else [place]:
            if path.is_file():
                yield path.read_bytes().decode(errors="replace")


def _everything(site: Site) -> str:
    """Every object of the namespace but the Secrets, managed fields included."""
    command = [str(kubectl()), "--kubeconfig", str(site.server.kubeconfig)]
    listed = [*command, "api-resources", "--namespaced", "--verbs=list", "-o", "name"]
    kinds = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    wanted = ",".join(kind for kind in kinds if kind != "secrets" and "metrics" not in kind)
    found = site.kubectl("get", wanted, "-o", "json", "--show-managed-fields", "--ignore-not-found")
    kinds_found = {item["kind"] for item in json.loads(found)["items"]}
    assert kinds_found >= {"LeadershipPolicy", "BrokerHealth", "Event", "Lease", "ConfigMap"}
    return found
