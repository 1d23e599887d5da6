"""A rebalance's jobs as local processes: one step after the other, never waited for, ended with us."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_world import ManualClock
from bellwether_load.controller.job_commands import JobState, JobStatus, Work
from bellwether_load.controller.process_jobs import ProcessJobs, inherited
from testkit.loads.load_configs import profile
from testkit.messages import assert_wording

RUN = "at-1"
# Runs in place of Python: says how it was called and does what the folder's files tell it.
SCRIPT = """#!/bin/sh
echo "$3 $*" >> "$FOLDER/called"
env > "$FOLDER/environment"
if [ -e "$FOLDER/$3.hangs" ]; then echo $$ > "$FOLDER/new"; mv "$FOLDER/new" "$FOLDER/pid"; sleep 60; fi
if [ -e "$FOLDER/$3.fails" ]; then echo "   0.1 s  Spark is up"; echo "error: $3 cannot be done" >&2; exit 1; fi
"""


def work(run: str) -> Work:
    return Work(run, f"default.main.{run}", "/store", 7)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "python").write_text(SCRIPT)
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("FOLDER", str(tmp_path))
    return tmp_path


def jobs_of(folder: Path, clock: Clock | None = None, **fields: Any) -> ProcessJobs:
    environment = inherited(["FOLDER"])
    return ProcessJobs(
        work, profile(type="Process", **fields), clock or SystemClock(), environment, str(folder / "python")
    )


@pytest.fixture
def jobs(folder: Path) -> Iterator[ProcessJobs]:
    made = jobs_of(folder)
    yield made
    made.close()


def ended(jobs: ProcessJobs) -> JobStatus:
    for _ in range(500):
        word = jobs.look(RUN)
        assert word is not None
        if word.state is not JobState.ACTIVE:
            return word
        time.sleep(0.01)
    raise AssertionError("it does not end")


def called(folder: Path) -> list[str]:
    path = folder / "called"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def test_the_loads_are_measured_first_and_the_plan_is_made_then(jobs: ProcessJobs, folder: Path):
    jobs.start(RUN)
    assert ended(jobs) == JobStatus(JobState.SUCCEEDED)
    assert called(folder) == ["loads", "plan"]
    assert_wording((folder / "called").read_text())


def test_a_run_that_was_started_is_not_started_again(jobs: ProcessJobs, folder: Path):
    jobs.start(RUN)
    jobs.start(RUN)
    ended(jobs)
    jobs.start(RUN)
    assert ended(jobs) == JobStatus(JobState.SUCCEEDED)
    assert called(folder) == ["loads", "plan"]


def test_a_step_that_fails_ends_the_run_and_its_last_words_say_why(jobs: ProcessJobs, folder: Path):
    (folder / "loads.fails").touch()
    jobs.start(RUN)
    assert ended(jobs) == JobStatus(JobState.FAILED, "loads: exit status 1: error: loads cannot be done")
    assert called(folder) == ["loads"]


def test_starting_a_step_does_not_block(jobs: ProcessJobs, folder: Path):
    (folder / "loads.hangs").touch()
    began = time.monotonic()
    jobs.start(RUN)
    assert jobs.look(RUN) == JobStatus(JobState.ACTIVE, "loads")
    assert time.monotonic() - began < 5


def test_what_takes_too_long_is_ended_and_has_failed(folder: Path):
    clock = ManualClock()
    (folder / "plan.hangs").touch()
    jobs = jobs_of(folder, clock, timeoutSeconds=60)
    jobs.start(RUN)
    while jobs.look(RUN) != JobStatus(JobState.ACTIVE, "plan") or not (folder / "pid").exists():
        time.sleep(0.01)
    clock.advance(61)
    assert jobs.look(RUN) == JobStatus(JobState.FAILED, "plan: not done within 60 s")
    assert gone(folder)


def test_what_runs_ends_with_us(jobs: ProcessJobs, folder: Path):
    (folder / "loads.hangs").touch()
    jobs.start(RUN)
    while not (folder / "pid").exists():
        time.sleep(0.01)
    jobs.close()
    assert gone(folder)
    assert jobs.look(RUN) is None


def test_an_unknown_run_is_not_found(jobs: ProcessJobs):
    assert jobs.look("another") is None


def test_a_process_of_the_operator_gets_no_secret_of_the_operators_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    canaries = {"AWS_SECRET_ACCESS_KEY": "canary-1", "KUBECONFIG": "canary-2", "BELLWETHER_TOKEN": "canary-3"}
    for name, value in canaries.items():
        monkeypatch.setenv(name, value)
    jobs = jobs_of(folder)
    jobs.start(RUN)
    ended(jobs)
    text = (folder / "environment").read_text()
    assert [value for value in canaries.values() if value in text] == []


def test_what_a_process_needs_to_start_and_what_its_profile_names_is_inherited(monkeypatch: pytest.MonkeyPatch):
    for name in ("PYTHONPATH", "AWS_REGION", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    found = inherited(["AWS_REGION", "ABSENT"])
    assert found["AWS_REGION"] == "value of AWS_REGION"
    assert {"PATH", "PYTHONPATH"} <= found.keys()
    assert found.keys().isdisjoint({"AWS_SECRET_ACCESS_KEY", "ABSENT"})


def test_a_program_that_is_not_there_is_named():
    jobs = ProcessJobs(work, profile(type="Process"), SystemClock(), {}, "/nowhere/python")
    with pytest.raises(Terminal, match="/nowhere/python: cannot be started: No such file"):
        jobs.start(RUN)


def gone(folder: Path) -> bool:
    pid = int((folder / "pid").read_text())
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
