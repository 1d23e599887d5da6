"""Credentials as files: private, and removed with their last user."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import SECRETS, Resource
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import KEPT_SECONDS, SecretReader, api_servers
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Unauthenticated
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi

ONE_FILE = """
import sys
from bellwether.adapters.kubernetes.api_client import SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import KEPT_SECONDS, SecretReader
from bellwether.destinations import ANYWHERE
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi

api = MemoryApi()
api.put(SECRETS, {"metadata": {"name": "ca", "namespace": "default"}, "data": {"ca.crt": "eA=="}})
kept = SecretReader(api, "default", destinations=ANYWHERE)
print(kept.open("ca").file("ca.crt"), flush=True)
{ends}
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    made.put(SECRETS, {"metadata": {"name": "ca", "namespace": "default"}, "data": {"ca.crt": "eA=="}})
    return made


def test_reader_of_labelled_secrets_names_missing_label_and_remedy() -> None:
    api = MemoryApi()
    secret = {"metadata": {"name": "payroll", "namespace": "default"}, "data": {"password": "c2VjcmV0"}}
    api.put(SECRETS, secret)
    reader = SecretReader(api, "default", labelled=True, destinations=ANYWHERE)
    with pytest.raises(Unauthenticated, match=r"kubectl label secret payroll -n default bellwether\.dev/purpose=kafka"):
        reader.open("payroll")
    assert reader.of_strimzi("default").open("payroll").text("password") == "secret"
    api.put(SECRETS, {**secret, "metadata": {**secret["metadata"], "labels": {"bellwether.dev/purpose": "kafka"}}})
    assert reader.open("payroll").text("password") == "secret"


def test_a_kafka_users_secret_is_read_for_strimzi_alone() -> None:
    api = MemoryApi()
    api.put(SECRETS, strimzi_objects.scram_secret("x"))
    for labelled in (True, False):
        reader = SecretReader(api, "default", labelled=labelled, destinations=ANYWHERE)
        with pytest.raises(Unauthenticated, match=r"that of a KafkaUser.*name the cluster in spec\.kafka\.strimzi"):
            reader.open("bellwether")
        assert reader.of_strimzi("default").open("bellwether").text("password") == "x"


def test_a_file_is_for_this_user_alone(api: MemoryApi, directory: Path):
    reader = SecretReader(api, "default", destinations=ANYWHERE)
    path = reader.open("ca").file("ca.crt")
    assert path.read_bytes() == b"x"
    assert [oct(p.stat().st_mode & 0o777) for p in (path, path.parent)] == ["0o600", "0o700"]


def test_a_reader_that_writes_no_file_makes_no_directory(api: MemoryApi, directory: Path):
    reader = SecretReader(api, "default", destinations=ANYWHERE)
    assert reader.value("ca", "ca.crt") == "x"
    assert list(directory.iterdir()) == []


def test_a_renewed_secret_keeps_the_old_file(api: MemoryApi, directory: Path):
    with SecretReader(api, "default", destinations=ANYWHERE) as reader:
        before = reader.open("ca").file("ca.crt")
        api.merge(SECRETS, "default", "ca", {"data": {"ca.crt": "eQ=="}})
        after = reader.open("ca").file("ca.crt")
        assert (before.read_bytes(), after.read_bytes()) == (b"x", b"y")
        assert before.parent == after.parent
    assert list(directory.iterdir()) == []


def test_old_keys_do_not_pile_up_with_renewals(api: MemoryApi, directory: Path):
    now = 0.0
    with SecretReader(api, "default", lambda: now, destinations=ANYWHERE) as reader:
        paths = []
        for value in ("eQ==", "eg==", "YQ=="):
            now += KEPT_SECONDS * 0.6
            api.merge(SECRETS, "default", "ca", {"data": {"ca.crt": value}})
            paths.append(reader.open("ca").file("ca.crt"))
        assert [path.exists() for path in paths] == [False, True, True]


def test_files_go_when_reader_closes_and_return_on_next_request(api: MemoryApi, directory: Path):
    reader = SecretReader(api, "default", destinations=ANYWHERE)
    reader.open("ca").file("ca.crt")
    reader.close()
    reader.close()
    assert list(directory.iterdir()) == []
    assert reader.open("ca").file("ca.crt").read_bytes() == b"x"


def test_files_are_removed_with_the_last_reference_to_the_reader(api: MemoryApi, directory: Path):
    SecretReader(api, "default", destinations=ANYWHERE).open("ca").file("ca.crt")
    gc.collect()
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param("", id="it is done"),
        pytest.param("raise KeyboardInterrupt", id="it is interrupted"),
    ],
)
def test_files_go_when_the_process_ends(tmp_path: Path, ends: str):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    code = ONE_FILE.replace("{ends}", ends)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert Path(done.stdout.strip()).parent.parent == tmp_path, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("10.0.0.1", ("10.0.0.1", 443)),
        ("[fd00::1]:6443", ("fd00::1", 6443)),
        ("localhost:6443", ("127.0.0.1", 6443)),
    ],
)
def test_servers_of_api_are_those_of_url_and_of_answer(host: str, own: tuple[str, int]) -> None:
    class Answering(MemoryApi):
        def get(self, resource: Resource, namespace: str, name: str) -> Any:
            assert resource.path(namespace, name) == "/api"
            noted = ("192.0.2.1:6443", "a.invalid:6443", "nonsense")
            return {"serverAddressByClientCIDRs": [{"serverAddress": one} for one in noted]}

    api = Answering()
    api.url = f"https://{host}"
    assert {own, ("192.0.2.1", 6443)} <= api_servers(api)
