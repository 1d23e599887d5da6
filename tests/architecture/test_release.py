"""A release: one version everywhere, workflows that are linted and pinned, refusals before anything is published."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bellwether import __version__
from chartvalues.platform_values import REGISTRY
from node.archives import write_image, write_layer
from realparts import gotools
from realparts.helm import Helm
from realparts.registry import Registry
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


def ran(tree: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The release's command in a tree, after it ended."""
    paths = os.pathsep.join(str(ROOT / source) for source in SOURCES)
    command = [sys.executable, tree / "packaging" / "release.py", *arguments]
    given = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run(command, cwd=tree, env=given, capture_output=True, text=True, check=False)


def refused(tree: Path, *arguments: str | Path, **environment: str) -> str:
    """The one sentence with which it refuses."""
    ended = ran(tree, *arguments, **environment)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert not (tree / "dist").exists()
    (said,) = ended.stderr.splitlines()
    return said


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


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A release that has a chart and no image."""
    folder = tmp_path / "built"
    Helm(tmp_path / "helm").run("package", ROOT / "helm" / "bellwether", "--destination", folder)
    summed(folder)
    return folder


def summed(folder: Path) -> None:
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("bellwether*")}
    (folder / "SHA256SUMS").write_text("".join(f"{sum_of}  {name}\n" for name, sum_of in sums.items()))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key as the release wants it."""
    file = tmp_path / "key.pem"
    private = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with Registry(tmp_path / "registry") as running:
        yield running.address


def published(registry: str) -> list[str]:
    """Each version of each repository of a registry."""

    def asked(path: str) -> Any:
        with urlopen(f"http://{registry}/v2/{path}", timeout=10) as answer:
            return json.load(answer)

    return [f"{name}:{tag}" for name in asked("_catalog")["repositories"] for tag in asked(f"{name}/tags/list")["tags"]]


def test_tag_of_another_version_is_refused(tree: Path) -> None:
    said = f"error: tag v9.9.9 does not match version {__version__} of operator/bellwether/__init__.py"
    assert refused(tree, "dry-run", "--tag", "v9.9.9").startswith(said)
    subprocess.run(["git", "tag", "v9.9.9"], cwd=tree, check=True)
    for verb in (["dry-run"], ["check"], ["publish", "--registry", "x/y", "--key", "none"]):
        assert refused(tree, *verb).startswith(said)


def test_file_that_is_not_committed_is_refused(tree: Path) -> None:
    (tree / "left.txt").touch()
    for verb in (["dry-run"], ["check"], ["publish", "--registry", "x/y", "--key", "none"]):
        assert refused(tree, *verb).startswith("error: not as committed: left.txt")


def test_missing_git_is_refused(tree: Path, tmp_path: Path) -> None:
    assert refused(tree, "dry-run", PATH=str(tmp_path)) == "error: git is missing: install it"


def test_missing_or_wrong_key_is_refused_before_building(tree: Path, key: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    private = load_pem_private_key(key.read_bytes(), None)
    locked = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    (tmp_path / "locked").write_bytes(locked)
    for verb in (["dry-run"], ["publish", "--registry", "127.0.0.1:9/x"]):
        assert "no key at " in refused(tree, *verb, "--key", tmp_path / "none")
        for name in ("empty", "locked"):
            assert "is no private key in PEM for P-256" in refused(tree, *verb, "--key", tmp_path / name)


@pytest.mark.parametrize("registry", ["127.0.0.1:9/x", "http://127.0.0.1:9/x", "nowhere.invalid/x"])
def test_registry_that_does_not_answer_is_refused(tree: Path, built: Path, key: Path, registry: str) -> None:
    said = refused(tree, "publish", "--out", built, "--registry", registry, "--key", key)
    assert said.startswith("error: no registry answers at ")
    assert not (built / "SHA256SUMS.sig").exists()


@pytest.mark.slow
def test_missing_tool_is_refused_with_nothing_published(
    tree: Path, built: Path, key: Path, registry: str, tmp_path: Path
) -> None:
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    (built / f"bellwether-{__version__}.oci.tar").touch()
    summed(built)
    asked = ["publish", "--out", built, "--registry", f"{registry}/x", "--key", key]
    assert refused(tree, *asked, PATH=str(tmp_path)) == "error: skopeo is missing: install it"
    assert published(registry) == []


@pytest.mark.slow
def test_release_is_published_once_and_only_as_built(tree: Path, built: Path, key: Path, registry: str) -> None:
    asked = ["publish", "--out", built, "--registry", f"{registry}/x", "--key", key]
    chart = built / f"bellwether-{__version__}.tgz"
    whole = chart.read_bytes()
    chart.write_bytes(whole[:-1])
    assert f"does not hold {__version__} as it was built" in refused(tree, *asked)
    assert f"does not hold {__version__} as it was built" in refused(tree, *asked[:2], built.parent, *asked[3:])
    assert published(registry) == []
    chart.write_bytes(whole)
    ended = ran(tree, *asked)
    assert ended.returncode == 0, ended.stderr
    assert published(registry) == [f"x/charts/bellwether:{__version__}"]
    assert f"{registry}/x/charts/bellwether has {__version__} already: a release is never replaced" in refused(
        tree, *asked
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo, which copies images")
def test_publication_that_ended_before_the_chart_is_repeated(
    tree: Path, built: Path, key: Path, registry: str, tmp_path: Path
) -> None:
    write_layer({"empty": key}, tmp_path / "layer")
    write_image("x:1", [tmp_path / "layer"], {"Cmd": ["/x"]}, tmp_path / "image")
    archive = f"oci-archive:{built}/bellwether-{__version__}.oci.tar:{__version__}"
    subprocess.run(["skopeo", "copy", "--quiet", f"docker-archive:{tmp_path}/image", archive], check=True)
    chart = built / f"bellwether-{__version__}.tgz"
    whole = chart.read_bytes()
    chart.write_bytes(b"no chart")
    summed(built)
    asked = ["publish", "--out", built, "--registry", f"{registry}/x", "--key", key]
    assert ran(tree, *asked).returncode == 1
    assert published(registry) == [f"x/bellwether:{__version__}"]
    chart.write_bytes(whole)
    summed(built)
    ended = ran(tree, *asked)
    assert ended.returncode == 0, ended.stderr
    assert published(registry) == [f"x/bellwether:{__version__}", f"x/charts/bellwether:{__version__}"]


def test_folder_with_other_files_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "notes.txt"
    other.parent.mkdir()
    other.write_text("kept")
    assert "holds something else than a release" in refused(tree, "dry-run", "--out", other.parent)
    assert other.read_text() == "kept"


def test_files_that_differ_in_two_images_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    from release import files_that_differ

    def blob(layout: Path, content: bytes) -> dict[str, str]:
        name = hashlib.sha256(content).hexdigest()
        (layout / "blobs" / "sha256" / name).write_bytes(content)
        return {"digest": f"sha256:{name}"}

    for name, changed in (("first", "1"), ("second", "2")):
        layout, layer = tmp_path / name / "layout", tmp_path / name / "layer"
        (layout / "blobs" / "sha256").mkdir(parents=True)
        for file, content in (("same", "0"), ("changed", changed)):
            (tmp_path / name / file).write_text(content)
        write_layer({f"etc/{file}": tmp_path / name / file for file in ("same", "changed")}, layer)
        layers = json.dumps({"layers": [blob(layout, layer.read_bytes())]}).encode()
        (layout / "index.json").write_text(json.dumps({"manifests": [blob(layout, layers)]}))
        write_layer({path.name: path for path in layout.iterdir()}, tmp_path / name / "x.oci.tar")
    assert files_that_differ("x.oci.tar", tmp_path / "first", tmp_path / "second") == ["etc/changed"]
