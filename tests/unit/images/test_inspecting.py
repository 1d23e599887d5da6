"""What the search of an image finds, on trees that hold what it looks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from images import inspecting


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_harmless_tree_is_clean(tmp_path: Path) -> None:
    put(tmp_path, "usr/bin/python3", mode=0o755)
    put(tmp_path, "opt/bellwether/lib/a.py")
    bytecode(tmp_path, "a", inspecting.UNCHECKED_HASH)
    for search in (
        inspecting.setuid,
        inspecting.tools,
        inspecting.histories,
        inspecting.secrets,
        inspecting.caches,
        inspecting.stale_bytecode,
    ):
        assert search(tmp_path) == [], search.__name__


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_files_that_change_who_runs_them_are_found(tmp_path: Path, mode: int) -> None:
    put(tmp_path, "usr/bin/su", mode=mode)
    assert inspecting.setuid(tmp_path) == ["/usr/bin/su"]


def test_what_others_may_write_is_found_and_what_only_another_owner_may_is_not(tmp_path: Path) -> None:
    put(tmp_path, "srv/open", mode=0o666)
    put(tmp_path, "srv/closed", mode=0o644)
    stranger = os.getuid() + 4242
    assert inspecting.writable(tmp_path, stranger, stranger) == ["/srv/open"]


def test_what_the_user_owns_or_its_group_may_write_is_found(tmp_path: Path) -> None:
    put(tmp_path, "own", mode=0o600)
    put(tmp_path, "groups", mode=0o464)
    uid, gid = os.getuid(), (tmp_path / "own").stat().st_gid
    assert inspecting.writable(tmp_path, uid, gid + 1) == ["/own"]
    assert inspecting.writable(tmp_path, uid + 4242, gid) == ["/groups"]


@pytest.mark.parametrize(
    "path",
    [
        "usr/bin/gcc",
        "usr/bin/gcc-14",
        "usr/bin/apt-get",
        "opt/bellwether/bin/pip3",
        "usr/bin/perl",
        "usr/lib/python3/site-packages/pip",
        "opt/bellwether/lib/python3.13/site-packages/setuptools-84.0.dist-info",
        "usr/lib/python3.13/ensurepip",
    ],
)
def test_a_tool_is_found(tmp_path: Path, path: str) -> None:
    put(tmp_path, path, mode=0o755)
    assert inspecting.tools(tmp_path) == [f"/{path}"]


def test_a_program_that_only_begins_like_a_tool_is_no_tool(tmp_path: Path) -> None:
    put(tmp_path, "usr/bin/pipesz", mode=0o755)
    put(tmp_path, "usr/bin/ldconfig", mode=0o755)
    put(tmp_path, "opt/bellwether/lib/pip/as", mode=0o755)
    assert inspecting.tools(tmp_path) == []


@pytest.mark.parametrize("path", ["root/.bash_history", "tmp/.python_history", "root/.netrc"])
def test_a_history_is_found(tmp_path: Path, path: str) -> None:
    put(tmp_path, path)
    assert inspecting.histories(tmp_path) == [f"/{path}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/a.pem", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "a1B2" * 16),
        ("etc/pip.conf", "index-url = https://" + "someone:word@packages.example.org/simple"),
        ("root/kubeconfig", ""),
        ("etc/tls/server.key", ""),
    ],
)
def test_a_secret_is_found(tmp_path: Path, path: str, text: str) -> None:
    put(tmp_path, path, text)
    assert inspecting.secrets(tmp_path) == [f"/{path}"]


@pytest.mark.parametrize("text", ["-----BEGIN " + "PRIVATE KEY-----", "as in http://user:pass@example.org", "a@b:c"])
def test_words_about_secrets_are_none(tmp_path: Path, text: str) -> None:
    put(tmp_path, "opt/a.py", text)
    assert inspecting.secrets(tmp_path) == []


def test_caches_and_logs_are_found(tmp_path: Path) -> None:
    put(tmp_path, "var/cache/apt/pkgcache.bin")
    put(tmp_path, "var/log/dpkg.log")
    assert inspecting.caches(tmp_path) == ["/var/cache/apt/pkgcache.bin", "/var/log/dpkg.log"]


def bytecode(root: Path, module: str, flags: bytes) -> None:
    path = root / "opt" / "bellwether" / "lib" / "__pycache__" / f"{module}.cpython-313.pyc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xf3\r\r\n" + flags + bytes(8))


def test_module_without_bytecode_that_is_used_is_found(tmp_path: Path) -> None:
    for module in "abc":
        put(tmp_path, f"opt/bellwether/lib/{module}.py")
    bytecode(tmp_path, "b", inspecting.UNCHECKED_HASH)
    bytecode(tmp_path, "c", bytes(4))  # used only at the time that it was compiled for
    assert inspecting.stale_bytecode(tmp_path) == ["/opt/bellwether/lib/a.py", "/opt/bellwether/lib/c.py"]
