"""Run plan jobs as local processes: first the loads, then the plan, each ``python -m bellwether_load``.

For job profiles of type Process. Nothing waits for a process: ``look`` sees whether one has
ended and starts the next. A process ends with this one; an unknown run is started again by the next caller. A process
gets only the environment that its caller passes: the operator's own has credentials (``inherited``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal
from bellwether_load.api.job_profile import JobProfile
from bellwether_load.controller.job_commands import JobState, JobStatus, Work, commands, last_words

STEPS = ("loads", "plan")
_ENDING_SECONDS = 5
_INHERITED = ("HOME", "LANG", "PATH", "PYTHONPATH", "TMPDIR")


def inherited(names: Iterable[str]) -> dict[str, str]:
    """The part of this process' environment that a job needs to start, and the variables of these names."""
    wanted = {*_INHERITED, *names}
    return {k: v for k, v in os.environ.items() if k in wanted}


@dataclass
class _Going:
    """One active run: its step, its process and that process's output."""

    commands: tuple[list[str], ...]
    began: float
    step: int = 0
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None
    ended: JobStatus | None = None

    @property
    def lines(self) -> list[str]:
        """The output of the current step so far."""
        return Path(self.log.name).read_text(errors="replace").splitlines() if self.log is not None else []


class ProcessJobs:
    """The jobs of one policy on this machine; ``work`` makes the work of a run from its name."""

    def __init__(
        self,
        work: Callable[[str], Work],
        profile: JobProfile,
        clock: Clock,
        environment: Mapping[str, str],
        python: str = sys.executable,
    ) -> None:
        self._work = work
        self._profile = profile
        self._clock = clock
        self._environment = environment
        self._python = python
        self._runs: dict[str, _Going] = {}

    def start(self, run: str) -> None:
        """Start the first step unless the run is known. Terminal when no process can be started."""
        if run not in self._runs:
            going = _Going(commands(self._work(run), self._profile, self._python), self._clock.monotonic())
            self._begin(going)
            self._runs[run] = going

    def look(self, run: str) -> JobStatus | None:
        """What has become of it; starts the second step once the first has ended well."""
        going = self._runs.get(run)
        if going is None:
            return None
        if going.ended is None:
            self._watch(going)
        return going.ended or JobStatus(JobState.ACTIVE, STEPS[going.step])

    def close(self) -> None:
        """End what runs."""
        for going in self._runs.values():
            self._end(going)
        self._runs.clear()

    def _watch(self, going: _Going) -> None:
        status = going.process.poll() if going.process is not None else None
        if status is None:
            if self._clock.monotonic() - going.began > self._profile.timeout_seconds:
                self._end(going)
                text = f"{STEPS[going.step]}: not done within {self._profile.timeout_seconds} s"
                going.ended = JobStatus(JobState.FAILED, text)
            return
        if status != 0:
            text = f"{STEPS[going.step]}: exit status {status}: {last_words(going.lines)}".removesuffix(": ")
            self._end(going)
            going.ended = JobStatus(JobState.FAILED, text)
        elif going.step + 1 < len(going.commands):
            self._end(going)
            going.step += 1
            self._begin(going)
        else:
            self._end(going)
            going.ended = JobStatus(JobState.SUCCEEDED)

    def _begin(self, going: _Going) -> None:
        going.log = tempfile.NamedTemporaryFile(prefix="bellwether-plan-", suffix=".log")  # noqa: SIM115 - kept open
        try:
            going.process = subprocess.Popen(
                going.commands[going.step], stdin=subprocess.DEVNULL, stdout=going.log, stderr=going.log,
                env=dict(self._environment), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Terminal(f"{going.commands[going.step][0]}: cannot be started: {error.strerror}") from error

    @staticmethod
    def _end(going: _Going) -> None:
        process, going.process = going.process, None
        if process is not None and process.poll() is None:
            # The whole session that we started.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if going.log is not None:
            going.log.close()
            going.log = None
