"""What is generated from the API's models is fresh, and nothing in its folders came from elsewhere."""

from __future__ import annotations

from pathlib import Path

from bellwether.api.v1alpha1 import generate
from chartvalues import generate as chart
from sourcetree import ROOT


def strangers(root: Path) -> list[str]:
    """Files in ``crds/`` that the models do not account for: left behind by a rename, or written by hand."""
    return sorted({p.relative_to(root).as_posix() for p in (root / "crds").iterdir()} - _generated())


def _generated() -> set[str]:
    return {path.as_posix() for path in generate.files()}


def test_the_charts_generated_files_are_fresh() -> None:
    assert chart.differences(ROOT) == "", "run: make generate"


def test_generated_files_are_fresh() -> None:
    assert generate.differences(ROOT) == "", "run: make generate"


def test_no_file_among_the_generated_ones_is_a_stranger() -> None:
    assert strangers(ROOT) == []


def test_a_stale_a_missing_and_a_strange_file_are_found(tmp_path: Path) -> None:
    generate.write(tmp_path)
    assert generate.differences(tmp_path) == ""
    stale, missing = sorted(p for p in (tmp_path / "crds").glob("*.yaml"))[:2]
    stale.write_text(stale.read_text() + "edited: by hand\n")
    missing.unlink()
    (tmp_path / "crds" / "old.yaml").touch()
    difference = generate.differences(tmp_path)
    assert "-edited: by hand" in difference
    assert f"expected/crds/{missing.name}" in difference
    assert strangers(tmp_path) == ["crds/old.yaml"]
