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


def commit(folder: Path, changed: str, message: str, time: str) -> None:
    """Commit a change of one file of the folder's repository, at a time."""
    path = folder / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(message)
    environment = {**os.environ, "GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
    git = ["git", "-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    for arguments in (["init", "--quiet"], ["add", changed], ["commit", "--quiet", "--message", message]):
        subprocess.run([*git, *arguments], cwd=folder, env=environment, check=True)


def run_ci(folder: Path, scene: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of ``.ci/run`` in a repository of its own, with a ``make`` that plays the stages."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "bin").mkdir()
    make = folder / "bin" / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    if not (folder / ".git").exists():
        commit(folder, "README.md", "first", "2026-01-01T00:00:00Z")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SCENE": scene, "GRACE_SECONDS": "1", **variables}
    for name in ("REPORTS", "BASE"):
        environment.pop(name, None)
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


def test_stage_that_fails_fails_run_and_later_stages_still_run(tmp_path: Path) -> None:
    done = run_ci(tmp_path, "exit 3")
    assert done.returncode != 0
    assert "exit   3" in done.stdout.split("==> Summary")[1]


@pytest.mark.parametrize(
    ("part", "stage"),
    [
        ("1", "stage verify test-slow SHARD=1/10 CHANGED_SINCE="),
        ("10", "stage verify test-slow SHARD=10/10 CHANGED_SINCE="),
        ("11", "stage image\n"),
        ("12", "stage cluster-test\n"),
    ],
)
def test_one_part_of_the_longer_checks_runs_and_is_named_with_its_command(
    tmp_path: Path, part: str, stage: str
) -> None:
    commit(tmp_path, "README.md", "old", "2026-01-01T00:00:00Z")
    commit(tmp_path, "docs/page.md", "new", "2026-01-02T00:00:00Z")
    done = run_ci(tmp_path, "true", PART=part)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"rotating part {part} of 12" in done.stdout
    assert stage in done.stdout
    assert ("stage image" in done.stdout, "stage cluster-test" in done.stdout) == (part == "11", part == "12")


def test_parts_whose_source_files_changed_run_whatever_the_commit_chooses(tmp_path: Path) -> None:
    commit(tmp_path, "README.md", "old", "2026-01-01T00:00:00Z")
    commit(tmp_path, "Dockerfile", "new", "2026-01-02T00:00:00Z")
    commit(tmp_path, "tests/support/node/bringing.py", "newer", "2026-01-02T01:00:00Z")
    done = run_ci(tmp_path, "true", PART="1")
    assert "stage image\n" in done.stdout
    assert "stage cluster-test\n" in done.stdout


def test_every_commit_chooses_a_part(tmp_path: Path) -> None:
    assert "rotating part " in run_ci(tmp_path, "true").stdout


@pytest.mark.parametrize("end", ["", "trap '' TERM; "])
def test_a_process_left_running_is_ended_and_fails_the_run(tmp_path: Path, end: str) -> None:
    scene = (
        f'setsid bash -c "{end}echo \\$\\$ >{tmp_path}/pid; while :; do sleep 0.2; done" >/dev/null 2>&1 & sleep 0.5'
    )
    done = run_ci(tmp_path, scene)
    assert done.returncode != 0
    assert "left running by demo" in done.stdout
    assert not alive((tmp_path / "pid").read_text().strip())
