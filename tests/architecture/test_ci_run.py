"""``.ci/run`` runs every stage, fails when one does, and leaves no process; a ``make`` of ours plays the stages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sourcetree import ROOT

# Plays pytest's closing line; in its demo stage it does what SCENE says.
MAKE = """#!/bin/bash
echo "stage $*"
case "$*" in
test) echo "===== 3 passed in 0.10s =====" ;;
demo) eval "$SCENE" ;;
esac
"""


def run_ci(folder: Path, scene: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of ``.ci/run`` in a folder of its own, with a ``make`` that plays the stages."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "bin").mkdir()
    make = folder / "bin" / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SCENE": scene}
    environment.pop("REPORTS", None)
    return subprocess.run(
        [folder / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def alive(pid: str) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ci_runs_the_readmes_test_command_and_prints_its_closing_line_last(tmp_path: Path) -> None:
    done = run_ci(tmp_path, "true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stage test\n" in done.stdout
    assert "===== 3 passed in 0.10s =====" in done.stdout.split("==> Summary")[1]
    assert "\nmake test\n" in (ROOT / "README.md").read_text()


def test_a_stage_that_fails_fails_the_run_and_later_stages_still_run(tmp_path: Path) -> None:
    done = run_ci(tmp_path, "exit 3")
    assert done.returncode != 0
    assert "exit   3" in done.stdout.split("==> Summary")[1]


@pytest.mark.parametrize("end", ["", "trap '' TERM; "])
def test_a_process_left_running_is_ended_and_fails_the_run(tmp_path: Path, end: str) -> None:
    scene = (
        f'setsid bash -c "{end}echo \\$\\$ >{tmp_path}/pid; while :; do sleep 0.2; done" >/dev/null 2>&1 & sleep 0.5'
    )
    done = run_ci(tmp_path, scene)
    assert done.returncode != 0
    assert "left running by demo" in done.stdout
    assert not alive((tmp_path / "pid").read_text().strip())
