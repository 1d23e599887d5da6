"""Secrets in Strimzi's shapes: what is taken from them, and what is said of those that cannot be used."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bellwether.adapters import pem
from bellwether.adapters.kubernetes.api_client import SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.kafka_user_secrets import (
    UserCredentials,
    authorities,
    user_credentials,
)
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Mechanism
from bellwether.ports.errors import Unauthenticated
from realparts.tls import Authority
from testkit.kubernetes.memory_api import MemoryApi

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'


@pytest.fixture
def secrets(api: MemoryApi) -> Iterator[SecretReader]:
    with SecretReader(api, "kafka", destinations=ANYWHERE) as reader:
        yield reader


@pytest.fixture
def pair(tmp_path: Path) -> tuple[bytes, bytes]:
    certificate, key = Authority(tmp_path / "clients").issue("bellwether")
    return certificate.read_bytes(), key.read_bytes()


def put(api: MemoryApi, name: str, **data: str | bytes) -> None:
    """A Secret; an underscore in a keyword represents a dot in a key, two for a dash."""
    encoded = {
        key.replace("__", "-").replace("_", "."): base64.b64encode(v.encode() if isinstance(v, str) else v).decode()
        for key, v in data.items()
    }
    api.put(SECRETS, {"metadata": {"name": name, "namespace": "kafka"}, "data": encoded})


def test_a_value_that_no_bundle_can_be_is_named_by_secret_and_key(api: MemoryApi, secrets: SecretReader):
    put(api, "evil", ca_crt=b"-----BEGIN A-----\n" * (pem.SIZE_LIMIT // 18 + 1))
    with pytest.raises(Unauthenticated, match=r"secret kafka/evil: key 'ca\.crt' has \d+ bytes; PEM of at most"):
        authorities(secrets, "evil")


def test_a_cluster_s_authority_is_trusted(api: MemoryApi, secrets: SecretReader, tmp_path: Path):
    authority = Authority(tmp_path).path.read_bytes()
    put(api, "main-cluster-ca-cert", ca_crt=authority, ca_p12=b"\x30\x82", ca_password="hunter2")
    assert Path(authorities(secrets, "main-cluster-ca-cert")).read_bytes().strip() == authority.strip()


def test_during_renewal_old_and_new_authority_are_both_trusted(api: MemoryApi, secrets: SecretReader, tmp_path: Path):
    new, old = (Authority(tmp_path / name).path.read_bytes() for name in ("new", "old"))
    put(api, "ca", ca_crt=new, ca__2026__01__01T00__00__00Z_crt=old)
    assert len(pem.validities(Path(authorities(secrets, "ca")).read_bytes())) == 2


def test_user_with_certificate_has_it_and_its_key_as_files(
    api: MemoryApi, secrets: SecretReader, pair: tuple[bytes, bytes]
):
    put(api, "bellwether", ca_crt="the clients' authority", user_crt=pair[0], user_key=pair[1], user_password="hunter2")
    found = user_credentials(secrets, "bellwether")
    assert (Path(found.cert_file).read_bytes(), Path(found.key_file).read_bytes()) == pair
    assert (found.mechanism, found.username, found.password) == (None, "", "")


def test_user_with_password_is_named_by_its_jaas_configuration(api: MemoryApi, secrets: SecretReader):
    put(api, "prefix-bellwether", password="hunter2", sasl_jaas_config=SCRAM.format("bellwether", "hunter2"))
    expected = UserCredentials(mechanism=Mechanism.SCRAM_SHA_512, username="bellwether", password="hunter2")
    assert user_credentials(secrets, "prefix-bellwether") == expected


def test_password_alone_belongs_to_user_whom_secret_is_called_after(api: MemoryApi, secrets: SecretReader):
    put(api, "bellwether", password="hunter2\n")
    found = user_credentials(secrets, "bellwether")
    assert (found.username, found.password) == ("bellwether", "hunter2")


@pytest.mark.parametrize(
    ("words", "user", "password", "mechanism"),
    [
        pytest.param(SCRAM.format("a b", r"quo\"ted\\"), "a b", 'quo"ted\\', "SCRAM-SHA-512", id="escaped"),
        pytest.param(
            "org.apache.kafka.common.security.plain.PlainLoginModule required\n  username=me\n  password=bare;",
            "me",
            "bare",
            "PLAIN",
            id="PLAIN, without quotes, on several lines",
        ),
    ],
)
def test_jaas_words_are_read_as_java_reads_them(
    api: MemoryApi, secrets: SecretReader, words: str, user: str, password: str, mechanism: str
):
    put(api, "u", sasl_jaas_config=words)
    found = user_credentials(secrets, "u")
    assert (found.username, found.password, found.mechanism) == (user, password, mechanism)


def test_the_password_is_printed_nowhere(api: MemoryApi, secrets: SecretReader):
    put(api, "u", password="hunter2")
    found = user_credentials(secrets, "u")
    assert "hunter2" not in f"{found} {found!r} {[found.password]}"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param({}, "is not that of a KafkaUser", id="nothing"),
        pytest.param({"ca_crt": "hunter2"}, "its keys: ca.crt", id="a cluster's"),
        pytest.param({"password": ""}, "key 'password' is empty", id="an empty password"),
        pytest.param({"password": b"\xffhunter2"}, "is not UTF-8 text", id="bytes for a password"),
        pytest.param({"sasl_jaas_config": "hunter2"}, "is not a PlainLoginModule or ScramLoginModule", id="no JAAS"),
        pytest.param({"sasl_jaas_config": SCRAM.format("u", "")}, "has no password", id="JAAS without a password"),
    ],
)
def test_secret_of_no_user_is_named_and_not_shown(
    api: MemoryApi, secrets: SecretReader, data: dict[str, str | bytes], said: str
):
    put(api, "u", **data)
    with pytest.raises(Unauthenticated, match=said) as caught:
        user_credentials(secrets, "u")
    noted = "".join(traceback.format_exception(caught.value))
    assert "secret kafka/u" in noted
    assert "hunter2" not in noted


def test_half_a_key_pair_is_named(api: MemoryApi, secrets: SecretReader, pair: tuple[bytes, bytes]):
    put(api, "u", user_crt=pair[0])
    with pytest.raises(Unauthenticated, match=r"has no key 'user\.key'; its keys: user\.crt"):
        user_credentials(secrets, "u")
    put(api, "u", user_key=pair[1])
    with pytest.raises(Unauthenticated, match=r"has no key 'user\.crt'; its keys: user\.key"):
        user_credentials(secrets, "u")


def test_a_key_of_another_certificate_is_refused(
    api: MemoryApi, secrets: SecretReader, pair: tuple[bytes, bytes], tmp_path: Path
):
    _, other = Authority(tmp_path / "others").issue("bellwether")
    put(api, "u", user_crt=pair[0], user_key=other.read_bytes())
    with pytest.raises(Unauthenticated, match=r"key 'user\.key' is not the private key of the certificate in"):
        user_credentials(secrets, "u")


def test_a_key_with_a_passphrase_is_refused_with_the_remedy(
    api: MemoryApi, secrets: SecretReader, pair: tuple[bytes, bytes]
):
    locked = load_pem_private_key(pair[1], None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"passphrase"),
    )
    put(api, "u", user_crt=pair[0], user_key=locked)
    with pytest.raises(Unauthenticated, match=r"key 'user\.key' is a private key with a passphrase.*openssl pkey"):
        user_credentials(secrets, "u")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param({"ca_p12": b"\x30\x82"}, "no key 'ca.crt'; its keys: ca.p12", id="PKCS#12 alone"),
        pytest.param({"ca_crt": b"\x30\x82hunter2"}, "key 'ca.crt' holds no PEM certificate: it is DER", id="DER"),
        pytest.param({}, "its keys: none", id="nothing"),
    ],
)
def test_authorities_that_cannot_be_used_are_named(
    api: MemoryApi, secrets: SecretReader, data: dict[str, bytes], said: str
):
    put(api, "ca", **data)
    with pytest.raises(Unauthenticated, match=said) as caught:
        authorities(secrets, "ca")
    assert "hunter2" not in str(caught.value)


def test_secret_that_is_missing_says_what_to_put_into_it(secrets: SecretReader):
    with pytest.raises(Unauthenticated, match=r"secret kafka/u does not exist: create it with key 'user\.crt' and"):
        user_credentials(secrets, "u")
    with pytest.raises(Unauthenticated, match=r"secret kafka/ca does not exist: create it with key 'ca\.crt'"):
        authorities(secrets, "ca")


def test_certificate_and_key_come_from_one_state_of_the_secret(
    api: MemoryApi, secrets: SecretReader, pair: tuple[bytes, bytes], tmp_path: Path
):
    put(api, "u", user_crt=pair[0], user_key=pair[1])
    opened = secrets.open("u")
    certificate, key = Authority(tmp_path / "renewed").issue("bellwether")
    put(api, "u", user_crt=certificate.read_bytes(), user_key=key.read_bytes())
    assert (opened.raw("user.crt"), opened.raw("user.key")) == pair
    assert Path(user_credentials(secrets, "u").key_file).read_bytes() == key.read_bytes()
