"""What a package index is given: a name of its own, extras that hold what the product needs, links that work there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from bellwether.extras import DISTRIBUTION, EXTRAS
from sourcetree import ROOT

LINK = re.compile(r"\]\(([^)]+)\)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """The metadata of the wheel, built as `pip install .` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, ROOT]
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *build], check=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(opened.read(name))


def relative_links(text: str) -> list[str]:
    """Links of a Markdown page that lead nowhere outside of this tree."""
    return [link for link in LINK.findall(text) if not link.startswith(("https://", "#"))]


def test_the_page_for_a_package_index_has_no_link_that_only_works_in_the_tree(metadata: Message) -> None:
    page = metadata.get_payload()
    assert isinstance(page, str)
    assert relative_links(page) == []
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# Bellwether for Apache Kafka"]


def test_its_links_into_project_lead_to_files_that_there_are(metadata: Message) -> None:
    base = "https://github.com/bellwether-kafka/bellwether/blob/main/"
    links = [*LINK.findall(str(metadata.get_payload())), *PROJECT["urls"].values()]
    own = [link.removeprefix(base) for link in links if link.startswith(base)]
    assert own
    assert [path for path in own if not (ROOT / path).is_file()] == []


def test_the_distribution_has_the_name_that_messages_give(metadata: Message) -> None:
    assert metadata["Name"] == DISTRIBUTION
    assert {one.partition(",")[0] for one in metadata.get_all("Project-URL", [])} == {
        "Homepage", "Documentation", "Changelog", "Repository", "Issues"
    }  # fmt: skip


def test_extra_that_is_named_for_missing_package_brings_it() -> None:
    brought = {
        extra: {Requirement(one).name for one in requirements}
        for extra, requirements in PROJECT["optional-dependencies"].items()
    }
    assert {name: extra for name, extra in EXTRAS.items() if name not in brought[extra]} == {}
    base = {Requirement(one).name for one in PROJECT["dependencies"]}
    assert set(EXTRAS) & base == set(), "what is always there is missing nowhere"


def test_what_is_said_to_install_is_this_distribution() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if re.search(r"pip install '?bellwether\b(?!-)", page.read_text())] == []


def test_each_extra_is_explained_on_the_page_on_installing() -> None:
    page = Path(ROOT / "docs" / "install.md").read_text()
    assert [extra for extra in PROJECT["optional-dependencies"] if f"[{extra}]" not in page] == []
