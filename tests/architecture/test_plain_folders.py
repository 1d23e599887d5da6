"""``operator/`` and ``spark/`` are plain folders: a package named ``operator`` would hide the standard library's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sourcetree import ROOT
from waiting import ran


def folders_made_packages(root: Path) -> list[str]:
    """Every top-level folder that is a package."""
    return sorted(p.relative_to(root).as_posix() for p in root.glob("[a-z]*/__init__.py"))


def python_started_at(root: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program with the root first on the path, as ``python -m`` and ``PYTHONPATH=.`` do."""
    environment = {**os.environ, "PYTHONPATH": "."}
    return ran([sys.executable, "-c", program], 300, cwd=root, env=environment)


def test_no_top_level_folder_is_a_package() -> None:
    assert folders_made_packages(ROOT) == []


@pytest.mark.parametrize("folder", ["operator", "spark"])
def test_an_init_file_in_a_plain_folder_is_found(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "__init__.py").touch()
    assert folders_made_packages(tmp_path) == [f"{folder}/__init__.py"]


def test_the_standard_library_operator_is_imported_at_the_root() -> None:
    done = python_started_at(ROOT, "import operator; print(operator.__file__); print(operator.itemgetter(1)('ab'))")
    assert done.returncode == 0, done.stderr
    path, item = done.stdout.split()
    assert not Path(path).is_relative_to(ROOT / "operator")
    assert item == "b"
