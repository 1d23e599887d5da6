"""The krew plug-in ``kubectl leaders``: its manifest, its archive, and the script in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether import __version__
from sourcetree import ROOT

KREW = ROOT / "packaging" / "krew"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("krew")
    subprocess.run([sys.executable, KREW.parent / "release.py", "krew", "--out", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def manifest(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((made / "leaders.yaml").read_text())
    return found


def test_the_manifest_has_what_krew_requires(manifest: dict[str, Any]) -> None:
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "leaders")
    spec = manifest["spec"]
    assert spec["version"] == f"v{__version__}"
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert max(map(len, spec["description"].splitlines())) <= 80
    assert spec["homepage"].startswith("https://")


def test_every_platform_has_its_archive_and_its_program(manifest: dict[str, Any], made: Path) -> None:
    archive = made / "kubectl-leaders.tar.gz"
    with tarfile.open(archive) as opened:
        packed = {one.name: one.mode for one in opened.getmembers()}
    for platform in manifest["spec"]["platforms"]:
        assert platform["uri"].endswith(f"/v{__version__}/{archive.name}")
        assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
        assert {one["from"] for one in platform["files"]} == set(packed)
        assert packed[platform["bin"]] & 0o111


def test_the_archive_has_the_same_bytes_every_time(made: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, KREW.parent / "release.py", "krew", "--out", tmp_path], check=True)
    again, before = (folder / "kubectl-leaders.tar.gz" for folder in (tmp_path, made))
    assert again.read_bytes() == before.read_bytes()


def test_the_script_runs_the_command_that_is_installed_and_says_what_is_missing(tmp_path: Path) -> None:
    command = tmp_path / "bellwether"
    command.write_text('#!/bin/sh\necho "asked: $*"\n')
    command.chmod(0o755)

    def run(path: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": str(path)}
        script = ["/bin/sh", KREW / "kubectl-leaders", "status", "-n", "kafka"]
        return subprocess.run(script, env=environment, capture_output=True, text=True, check=False)

    assert run(tmp_path).stdout == "asked: status -n kafka\n"
    missing = run(tmp_path / "empty")
    assert missing.returncode == 1
    assert "pipx install bellwether-kafka" in missing.stderr
