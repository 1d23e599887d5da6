"""What an image is made of: what the ignore file lets in, and a digest that changes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from images import base, recipe


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(base, "version", lambda: "a-base")
    (tmp_path / "operator" / "bellwether" / "__pycache__").mkdir(parents=True)
    (tmp_path / ".dockerignore").write_text(
        "# words\n*\n!LICENSE\n!operator/bellwether\n!requirements/*.lock\n**/__pycache__\n"
    )
    (tmp_path / "requirements").mkdir()
    for name in ("Dockerfile", "LICENSE", "notes.md", "operator/bellwether/a.py", "requirements/a.lock"):
        (tmp_path / name).write_text(name)
    (tmp_path / "operator/bellwether/__pycache__/a.pyc").write_text("x")
    return tmp_path


def test_only_what_the_ignore_file_lets_in_is_part_of_it(tree: Path) -> None:
    found = [path.relative_to(tree).as_posix() for path in recipe.files(tree)]
    assert found == ["LICENSE", "operator/bellwether/a.py", "requirements/a.lock"]


@pytest.mark.parametrize("name", ["Dockerfile", "LICENSE", "operator/bellwether/a.py", "requirements/a.lock"])
def test_another_content_is_another_image(tree: Path, name: str) -> None:
    before = recipe.digest(tree)
    (tree / name).write_text("another")
    assert recipe.digest(tree) != before


def test_another_name_is_another_image(tree: Path) -> None:
    before = recipe.digest(tree)
    (tree / "operator/bellwether/a.py").rename(tree / "operator/bellwether/b.py")
    assert recipe.digest(tree) != before


@pytest.mark.parametrize("name", ["notes.md", "operator/bellwether/__pycache__/a.pyc"])
def test_what_is_left_out_makes_no_other_image(tree: Path, name: str) -> None:
    before = recipe.digest(tree)
    (tree / name).write_text("another")
    assert recipe.digest(tree) == before


def test_another_base_is_another_image(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe.digest(tree)
    monkeypatch.setattr(base, "version", lambda: "another-base")
    assert recipe.digest(tree) != before


def test_the_real_recipe_holds_the_sources_and_no_test() -> None:
    found = {path.relative_to(recipe.ROOT).as_posix() for path in recipe.files()}
    assert {"operator/bellwether/reconcile.py", "spark/bellwether_load/__main__.py", "pyproject.toml"} <= found
    others = {name for name in found if name.startswith(("tests/", "docs/", ".", "crds/"))}
    assert others == {"docs/pypi.md"}  # the page of the package index is a part of the distribution
