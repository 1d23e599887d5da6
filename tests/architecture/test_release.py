"""A release: one version everywhere, workflows that are linted and pinned, and refusals before anything is built."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bellwether import __version__
from chartvalues.platform_values import REGISTRY
from realparts import gotools
from sourcetree import ROOT, texts

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
REPEATED = re.compile(r"(?:\brev: v|\bbellwether(?:-spark)?:|charts/bellwether --version )(\d+\.\d+\.\d+)")
PUBLISHED = re.compile(r"(ghcr\.io/[\w-]+)/(?:charts/)?bellwether")
SOURCES = ("operator", "spark", "helm", "tests/support")


def versions(root: Path) -> dict[str, set[str]]:
    """The versions of Bellwether that documents, examples and the chart repeat, by file."""
    found = {
        path.relative_to(root).as_posix(): set(REPEATED.findall(text))
        for path, text in texts(root).items()
        if path.suffix in {".md", ".yaml"} and path.relative_to(root).parts[0] != "tests"
    }
    return {name: numbers for name, numbers in found.items() if numbers and "decisions" not in name}


def test_every_document_repeats_the_version_of_the_package() -> None:
    found = versions(ROOT)
    assert len(found) >= 5
    assert {name: numbers for name, numbers in found.items() if numbers != {__version__}} == {}
    about = yaml.safe_load((ROOT / "helm" / "bellwether" / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == __version__


def test_another_version_in_a_document_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("helm install oci://x/charts/bellwether --version 9.1.0\n")
    assert versions(tmp_path) == {"README.md": {"9.1.0"}}


def test_every_document_names_the_registry_of_the_chart() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.yaml")]
    named = {name for page in pages for name in PUBLISHED.findall(page.read_text())}
    assert named == {REGISTRY}


def test_workflows_and_their_shell_pass_actionlint() -> None:
    command = [gotools.binary(gotools.ACTIONLINT), "-shellcheck=", "-pyflakes=", *WORKFLOWS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"^ *(?:- )?uses: (.+)$", workflow.read_text(), re.MULTILINE)
    assert used
    assert [one for one in used if not PINNED.match(one)] == []


def test_base_image_is_pinned_by_digest() -> None:
    assert re.search(r"^ARG BASE_IMAGE=\S+:[\d.]+-slim@sha256:[0-9a-f]{64}$", (ROOT / "Dockerfile").read_text(), re.M)


def released(tree: Path, *arguments: str | Path, **environment: str) -> str:
    """What the release's command says of a tree when it refuses."""
    paths = os.pathsep.join(str(ROOT / source) for source in SOURCES)
    command = [sys.executable, tree / "packaging" / "release.py", *arguments]
    ended = subprocess.run(
        command,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert not (tree / "dist").exists()
    return ended.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the release's command and one commit."""
    folder = tmp_path / "tree" / "packaging"
    folder.mkdir(parents=True)
    for file in ("release.py", "sbom.py", "signatures.py"):
        (folder / file).write_text((ROOT / "packaging" / file).read_text())
    (folder.parent / ".gitignore").write_text("__pycache__/\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message=a"]):
        subprocess.run(["git", *command], cwd=folder.parent, check=True)
    return folder.parent


def test_tag_that_is_not_the_versions_is_refused(tree: Path) -> None:
    said = f"tag v9.9.9 does not match version {__version__} of operator/bellwether/__init__.py"
    assert said in released(tree, "dry-run", "--tag", "v9.9.9")
    subprocess.run(["git", "tag", "v9.9.9"], cwd=tree, check=True)
    assert said in released(tree, "dry-run")


def test_file_that_is_not_committed_is_refused(tree: Path) -> None:
    (tree / "left.txt").touch()
    assert "not as committed: left.txt" in released(tree, "dry-run")


def test_missing_key_registry_and_tool_are_refused(tree: Path, tmp_path: Path) -> None:
    assert "no key at " in released(tree, "dry-run", "--key", tmp_path / "none")
    assert "no key at " in released(tree, "publish", "--registry", "127.0.0.1:9/x", "--key", tmp_path / "none")
    assert "git is missing: install it" in released(tree, "dry-run", PATH=str(tmp_path))
    (tmp_path / "key").touch()
    asked = ["publish", "--registry", "127.0.0.1:9/x", "--key", tmp_path / "key"]
    assert "no registry answers at 127.0.0.1:9" in released(tree, *asked)


def test_folder_with_other_files_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "notes.txt"
    other.parent.mkdir()
    other.write_text("kept")
    assert "holds something else than a release" in released(tree, "dry-run", "--out", other.parent)
    assert other.read_text() == "kept"
