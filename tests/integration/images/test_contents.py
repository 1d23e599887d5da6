"""What is in the images, and what is not: searched in the files that a container sees, and in every layer's bytes."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest

from bellwether import __version__
from images import inspecting, machine
from images.building import CANARY
from images.recipe import ROOT
from images.running import Unpacked

pytestmark = pytest.mark.image


def test_no_file_changes_user_or_group_of_who_runs_it(either: Unpacked) -> None:
    assert inspecting.setuid(either.root) == []


def test_the_images_user_could_write_nowhere_but_in_tmp(either: Unpacked) -> None:
    uid, gid = either.image.user
    assert inspecting.writable(either.root, uid, gid) == ["/tmp"]


def test_nothing_that_builds_installs_or_downloads_is_left(either: Unpacked) -> None:
    assert inspecting.tools(either.root) == []


def test_there_is_no_history_no_secret_and_no_cache(either: Unpacked) -> None:
    assert inspecting.histories(either.root) == []
    # librdkafka tests itself with a key that is in its published sources.
    assert [path for path in inspecting.secrets(either.root) if "/librdkafka-" not in path] == []
    assert inspecting.caches(either.root) == []


def test_every_module_has_its_bytecode(either: Unpacked) -> None:
    assert inspecting.stale_bytecode(either.root) == []


@pytest.mark.parametrize("needle", [CANARY, machine.CERTIFICATES, "zz-machine.conf"])
def test_nothing_of_the_builds_secrets_is_in_any_layer(either: Unpacked, needle: str) -> None:
    assert either.image.finds(needle.encode()) == []


def test_no_value_of_this_machines_settings_is_in_any_layer(either: Unpacked, tmp_path: Path) -> None:
    noted = machine.secrets(tmp_path / "secrets", CANARY)
    values = re.findall(r'[a-z]+://[^\s"\';]+', noted["apt.conf"].read_text() + noted["pip.conf"].read_text())
    found = {value: either.image.finds(value.encode()) for value in values}
    assert not any(found.values()), found


def test_it_trusts_debians_certificates_and_not_this_machines_own(either: Unpacked) -> None:
    trusted = (either.root / "etc/ssl/certs/ca-certificates.crt").read_text()
    debians = "".join(path.read_text() for path in (either.root / "usr/share/ca-certificates").rglob("*.crt"))
    assert certificates(trusted)
    assert certificates(trusted) <= certificates(debians)


def certificates(text: str) -> set[bytes]:
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", text, re.DOTALL)
    return {ssl.PEM_cert_to_DER_cert(block) for block in blocks}


def test_apts_sources_and_this_machines_name_are_gone(either: Unpacked) -> None:
    assert not (either.root / "etc/apt").exists()
    assert [(either.root / "etc" / name).read_text() for name in ("hostname", "hosts", "resolv.conf")] == ["", "", ""]


def test_licences_and_the_list_of_packages_are_there(either: Unpacked) -> None:
    packages = re.findall(r"^Package: (.+)$", (either.root / "var/lib/dpkg/status").read_text(), re.MULTILINE)
    assert "tini" in packages
    assert (either.root / "usr/share/doc/tini/copyright").read_text()
    assert list(
        (either.root / "opt/bellwether/lib").glob("python3*/site-packages/bellwether_kafka-*.dist-info/licenses/*")
    )


def test_labels_say_what_it_is(either: Unpacked) -> None:
    labels = either.image.labels
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.title"] in ("bellwether", "bellwether-spark")
    assert labels["org.opencontainers.image.description"]


def test_it_runs_as_a_user_without_a_shell_or_rights(either: Unpacked) -> None:
    assert either.image.user == (10001, 10001)
    assert "bellwether:x:10001:10001:Bellwether:/tmp:/usr/sbin/nologin" in (either.root / "etc/passwd").read_text()


def test_only_the_spark_image_has_a_java_runtime(either: Unpacked) -> None:
    is_spark = either.image.labels["org.opencontainers.image.title"] == "bellwether-spark"
    assert bool(list(either.root.glob("usr/lib/jvm/*/bin/java"))) == is_spark
    assert bool(list(either.root.glob("opt/bellwether/lib/*/site-packages/pyspark"))) == is_spark


def test_what_is_installed_is_what_the_locks_pin(either: Unpacked) -> None:
    installed = either.root.glob("opt/bellwether/lib/*/site-packages/*.dist-info")
    found = {canonical(name): version for name, _, version in (path.stem.rpartition("-") for path in installed)}
    lock = "spark" if "spark" in either.image.labels["org.opencontainers.image.title"] else "runtime"
    pins = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements" / f"{lock}.lock").read_text(), re.MULTILINE)
    allowed: dict[str, set[str]] = {}
    for name, version in pins:
        allowed.setdefault(canonical(name), set()).add(version)
    assert found.pop("bellwether-kafka") == __version__
    assert {name: version for name, version in found.items() if version not in allowed.get(name, ())} == {}
    assert len(found) > 30


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
