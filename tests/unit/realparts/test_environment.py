"""An installation that fails ends with one sentence, and is not taken for whole the next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from realparts import environment
from realparts.environment import Failed, make


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose pip prints an error and fails."""

    def create(folder: Path, *, with_pip: bool, clear: bool) -> None:
        assert with_pip
        assert clear
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found for click'\nexit 1\n")
        python.chmod(0o755)
        (folder / "made").write_text((folder / "made").read_text() + "x" if (folder / "made").exists() else "x")

    monkeypatch.setattr(environment.venv, "create", create)
    return tmp_path / "venv"


def test_a_failed_installation_is_one_sentence_and_is_made_anew(folder: Path, tmp_path: Path) -> None:
    lock = tmp_path / "demo.lock"
    lock.write_text("click==8.5.1 \\\n")
    for made in ("x", "xx"):
        with pytest.raises(
            Failed, match=r"^installing the Python packages failed: .*check the network.*install\.log\)$"
        ):
            make(folder, lock)
        assert (folder / "made").read_text() == made
