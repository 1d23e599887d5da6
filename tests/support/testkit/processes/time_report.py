"""Where the time of a test run goes: seconds and CPU seconds by test, group, fixture, worker and program.

In: pytest's hooks in every process of a run with ``--times=FILE`` (``make test-times``). Out: FILE as JSON, and tables
at the end of the run. CPU seconds are those of the worker and of every process below it, from ``/proc``; work of less
than ``LOOKED_INTO_SECONDS`` is added to the next that is longer, as looking costs some milliseconds itself.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testkit.processes.process_trees import Process, children_of
from testkit.processes.xdist_groups import lot_of

LOOKED_INTO_SECONDS = 0.05
SHOWN = 25
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Spent:
    """Wall clock and CPU seconds of something that happened ``count`` times."""

    wall: float = 0.0
    cpu: float = 0.0
    count: int = 0

    def add(self, wall: float, cpu: float, count: int = 1) -> None:
        """Count it once more, or as often as said."""
        self.wall, self.cpu, self.count = self.wall + wall, self.cpu + cpu, self.count + count


class ProcessTree:
    """CPU seconds of this process and of all below it, and of these by program."""

    def __init__(self) -> None:
        self._seen: dict[Process, tuple[str, float]] = {}
        self._last = 0.0

    def cpu(self) -> float:
        """CPU seconds until now; reads ``/proc``."""
        total = sum(os.times()[:4])
        for process in children_of(os.getpid()):
            if fields := _stat(process.id):
                own, reaped = (sum(map(int, fields[first : first + 2])) / _TICKS for first in (11, 13))
                total += own + reaped
                # A child is a copy of its parent until it runs a program of its own.
                program = program_name(_arguments(process.id)) or self._seen.get(process, ("", 0.0))[0]
                self._seen[process] = (program, own)
        self._last = max(total, self._last)  # a process that is not waited for is not counted after its end
        return self._last

    def programs(self) -> dict[str, float]:
        """CPU seconds by program; what was never seen alive is ``short-lived``."""
        found: dict[str, float] = defaultdict(float)
        for program, cpu in self._seen.values():
            found[program] += cpu
        found["pytest"] = sum(os.times()[:2])
        found["short-lived"] = self._last - sum(found.values())
        return dict(found)


def program_name(arguments: list[str]) -> str:
    """What a command line runs, in one or two words: ``kafka.Kafka``, ``bellwether operator``, ``etcd``."""
    program = Path(arguments[0]).name if arguments else ""
    if program == "java":
        return next((a for a in arguments if a.startswith(("kafka.", "org.apache."))), "java")
    if program.startswith("python") and "-m" in arguments:
        module = arguments.index("-m") + 1
        return " ".join(a for a in arguments[module : module + 2] if not a.startswith(("-", "/")))
    return program


class TimeRecorder:
    """The hooks: records in each process, and reports in the one that started the others."""

    def __init__(self, config: pytest.Config, report: Path) -> None:
        self._config, self._report = config, report
        self._tree, self._began = ProcessTree(), time.monotonic()
        self._tests: dict[str, Spent] = defaultdict(Spent)
        self._fixtures: dict[str, Spent] = defaultdict(Spent)
        self._collected = Spent()
        self._cpu = self._tree.cpu()
        self._workers: dict[str, Any] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """What imports and collecting took."""
        self._cpu = self._tree.cpu()
        self._collected.add(time.monotonic() - self._began, self._cpu)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """One test with its fixtures."""
        return (yield from self._timed(self._tests[item.nodeid]))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """One set-up of a fixture, without the fixtures that it uses."""
        return (yield from self._timed(self._fixtures[f"{fixturedef.argname} ({fixturedef.scope})"]))

    def pytest_sessionfinish(self) -> None:
        """A worker passes on what it has recorded."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["times"] = self._rows()

    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker has recorded."""
        self._workers[node.gateway.id] = node.workeroutput.get("times") if hasattr(node, "workeroutput") else None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the file and print its tables."""
        workers = {name: rows for name, rows in (self._workers or {"main": self._rows()}).items() if rows}
        self._report.parent.mkdir(parents=True, exist_ok=True)
        self._report.write_text(json.dumps({"workers": workers}, indent=1) + "\n")
        terminalreporter.section(f"where the time went ({self._report})")
        for line in tables(workers):
            terminalreporter.write_line(line)

    def _timed(self, spent: Spent) -> Generator[None, object, object]:
        began, before = time.monotonic(), self._cpu
        try:
            return (yield)
        finally:
            wall = time.monotonic() - began
            if wall > LOOKED_INTO_SECONDS:
                self._cpu = self._tree.cpu()
            spent.add(wall, self._cpu - before)

    def _rows(self) -> dict[str, Any]:
        cpu = self._tree.cpu()
        return {
            "wall": time.monotonic() - self._began,
            "cpu": cpu,
            "collecting": _row(self._collected),
            "tests": {name: _row(spent) for name, spent in self._tests.items()},
            "fixtures": {name: _row(spent) for name, spent in self._fixtures.items()},
            "programs": self._tree.programs(),
        }


def tables(workers: Mapping[str, Any]) -> Iterable[str]:
    """The report as lines of text."""
    yield "worker           wall s    CPU s   tests   collecting: wall s   CPU s"
    for name, rows in sorted(workers.items()):
        collecting = f"{rows['collecting'][0]:20.1f} {rows['collecting'][1]:7.1f}"
        yield f"{name:12} {rows['wall']:10.1f} {rows['cpu']:8.1f} {len(rows['tests']):7} {collecting}"
    yield f"{'all':12} {'':10} {sum(rows['cpu'] for rows in workers.values()):8.1f}"
    programs: dict[str, Spent] = defaultdict(Spent)
    groups, files, tests, fixtures = (defaultdict[str, Spent](Spent) for _ in range(4))
    for rows in workers.values():
        for name, cpu in rows["programs"].items():
            programs[name].add(0, cpu)
        for name, (wall, cpu, count) in rows["fixtures"].items():
            fixtures[name].add(wall, cpu, count)
        for name, (wall, cpu, _count) in rows["tests"].items():
            groups[lot_of(name)].add(wall, cpu)
            files[name.partition("::")[0]].add(wall, cpu)
            tests[name].add(wall, cpu)
    titles = ("program (CPU only)", "group", "file", "fixture, set-up only", "test")
    for title, rows in zip(titles, (programs, groups, files, fixtures, tests), strict=True):
        yield ""
        yield f"  wall s    CPU s   count  {title}"
        for name, spent in sorted(rows.items(), key=lambda row: -(row[1].cpu + row[1].wall))[:SHOWN]:
            yield f"{spent.wall:8.1f} {spent.cpu:8.1f} {spent.count:7}  {name}"


def _row(spent: Spent) -> list[float]:
    return [round(spent.wall, 3), round(spent.cpu, 3), spent.count]


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []
