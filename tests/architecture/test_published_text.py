"""What is published names no machine of its makers: no folder of theirs, and no host that is not known to be public."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sourcetree import ROOT, texts

MACHINE_PATH = re.compile(r"(?<![\w./$}~-])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/")
URL_HOST = re.compile(r"\bhttps?://(?:[^\s/@'\"`]*@)?([A-Za-z0-9][A-Za-z0-9.-]*)")
INDEX_OPTION = re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|\bGOPROXY=\S")

# Documentation, standards and names reserved for examples. Package registries are left to each user's own settings.
PUBLIC = (
    "amazonaws.com",
    "apache.org",
    "aws.amazon.com",
    "bellwether-kafka.github.io",
    "confluent.io",
    "example.com",
    "contributor-covenant.org",
    "example.org",
    "github.com",
    "githubusercontent.com",
    "json-schema.org",
    "k8s.io",
    "keepachangelog.com",
    "kubernetes.io",
    "localhost",
    "prometheus.io",
    "python.org",
    "redpanda.com",
    "semver.org",
    "strimzi.io",
    "w3.org",
)
REGISTRIES = ("repo.maven.apache.org",)


def machine_paths(root: Path) -> list[str]:
    """Absolute folders of a developer's machine, as ``file:line``."""
    return _lines(root, lambda line: bool(MACHINE_PATH.search(line)))


def unknown_hosts(root: Path) -> list[str]:
    """URLs whose host is neither local nor on the public list, and options that name an index, as ``file:line``."""
    return _lines(
        root, lambda line: bool(INDEX_OPTION.search(line)) or any(not _public(h) for h in URL_HOST.findall(line))
    )


def _public(host: str) -> bool:
    host = host.lower().rstrip(".")
    if host in REGISTRIES:
        return False
    local = host.startswith(("127.", "0.")) or host.endswith(".svc") or ".svc." in host or "." not in host
    return local or any(host == known or host.endswith(f".{known}") for known in PUBLIC)


def _lines(root: Path, wrong: Callable[[str], bool]) -> list[str]:
    return [
        f"{path.relative_to(root).as_posix()}:{number}"
        for path, text in texts(root).items()
        if path != Path(__file__)  # its bad examples
        for number, line in enumerate(text.splitlines(), 1)
        if wrong(line)
    ]


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    assert machine_paths(ROOT) == []


def test_no_file_names_a_host_that_is_not_known_to_be_public() -> None:
    assert unknown_hosts(ROOT) == []


@pytest.mark.parametrize(
    "text", ["cache = '/root/.cache'", "see /work/notes/x.md", "cd /home/ann/src", "/tmp/mine/file"]
)
def test_a_folder_of_somebodys_machine_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.md").write_text(f"fine\n{text}\n")
    assert machine_paths(tmp_path) == ["notes.md:2"]


@pytest.mark.parametrize("text", ["$HOME/.cache/x", "a/work/b", "/var/run/secrets", "~/work/", "${TMP}/root/x"])
def test_a_path_of_nobodys_machine_is_let_through(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.md").write_text(text)
    assert machine_paths(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "http://mirror.corp.example.net/simple",
        "https://me:secret@packages.internal.net/x",
        "--index-url x",
        "GOPROXY=direct",
    ],
)
def test_an_unknown_host_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "dev.lock").write_text(f"fine\n{text}\n")
    assert unknown_hosts(tmp_path) == ["dev.lock:2"]


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:8080/x", "https://kafka.apache.org/43", "https://{host}:{port}", "http://svc:9090"]
)
def test_local_and_public_hosts_are_let_through(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.md").write_text(text)
    assert unknown_hosts(tmp_path) == []
