"""The storage prober's command: one table of all directories, and what it refuses to start with."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.cli.probe import probe
from bellwether.cli.probe.prober_options import log_directory
from bellwether.cli.probe.storage import measure
from bellwether.core.signals import SignalType
from bellwether.ports.errors import Terminal
from bellwether.probes.runtime.prober import ProbeDied
from bellwether.probes.runtime.prober_process import SidecarProcess
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.metrics.metric_registry import JointRegistry
from testkit.kafka.formatted_directories import formatted
from testkit.kubernetes.api_objects import health, policy
from testkit.kubernetes.memory_api import MemoryApi
from waiting import limit, until


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(probe, ["storage", *arguments])
    return done.exit_code, done.output


def test_one_measurement_is_a_table_of_all_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    directories = [f"--directory={name}={tmp_path / name}" for name in ("a", "b")]
    _, said = run("--once", "-o", "json", *directories)
    rows = [(row["directory"], row["operation"]) for row in json.loads(said)]
    assert rows == [(str(tmp_path / name), what) for name in ("a", "b") for what in ("write", "sync", "read")]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_one_directory_that_cannot_be_measured_is_found_among_good_ones(tmp_path: Path) -> None:
    code, said = run("--once", f"--directory=a={tmp_path}", f"--directory=b={tmp_path / 'none'}")
    assert code == 4
    assert "the directory does not exist" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--directory", "/a", "--directory", "b=/b"], "--directory /a: it is one of 2 directories"),
        (["--directory", "a=/a", "--directory", "a=/b"], "2 directories have the name a"),
        (["--directory", "a=/a", "--directory", "b=/a"], "2 directories have the path /a"),
        (["--directory", "a=/a", "--directory", "b=/b", "--log-dir", "/c"], "--log-dir /c: 2 directories are given"),
        (["--directory", "a b=/a"], "the name 'a b' must have 1 to 63 letters"),
        (["--directory", f"{'a' * 64}=/a"], "must have 1 to 63 letters"),
        (["--directory", "=/a"], "the name '' must have 1 to 63 letters"),
        (["--directory", "a="], "'a=' has no path"),
        (["--directory", ""], "'' has no path"),
        (["--directory", "a=/a", "--directory", "b=/b"], "'--policy'"),
    ],
)
def test_what_is_missing_or_wrong_is_named_by_its_option(arguments: list[str], complaint: str) -> None:
    code, said = run(*arguments)
    assert (code, complaint in said) == (2, True), said


class Site:
    """A policy with brokers 1 and 3, and a process next to one of them. ``failed`` is what ended it."""

    def __init__(self) -> None:
        self.api, self.failed = MemoryApi(), list[str]()
        self.api.put(POLICIES, policy())
        for broker in (1, 3):
            self.api.put(BROKER_HEALTHS, health(broker))
        page = JointRegistry("prober", {"policy": "main"})
        kind = SignalType.STORAGE_LATENCY
        self.process = SidecarProcess((self.api, "default"), "main", kind, page, Health(), threading.Event())

    @contextmanager
    def measuring(self, *directories: str) -> Iterator[None]:
        def run() -> None:
            try:
                measure(self.process, [log_directory(one) for one in directories])
            except (Terminal, ProbeDied) as error:
                self.failed.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.process.stop.set()
            thread.join(limit(10))

    def said(self, broker: int) -> dict[str, str]:
        status = self.api.get(BROKER_HEALTHS, "default", f"main-{broker}").get("status") or {}
        return {e["source"]: e["reading"] for e in status.get("signals") or [] if e["type"] == "StorageLatency"}


def test_signals_are_those_of_the_broker_whose_directory_is_measured(tmp_path: Path) -> None:
    site = Site()
    with site.measuring(str(formatted(tmp_path / "kafka-broker-1", 3))):
        until(lambda: site.said(3) == {"broker-3": "Passing"})
    assert site.said(1) == {}


def test_a_replaced_directory_ends_the_prober_without_a_failure(tmp_path: Path) -> None:
    site, data, other = Site(), tmp_path / "data", tmp_path / "other"
    data.symlink_to(formatted(tmp_path / "mine", 1))
    other.symlink_to(formatted(tmp_path / "theirs", 3, directory_id="d2"))
    with site.measuring(str(data)):
        until(lambda: site.said(1) == {"broker-1": "Passing"})
        other.replace(data)  # in one step: between two of them the prober may find no directory, and say that
        until(site.process.stop.is_set)
    (why,) = site.failed
    assert why.startswith(f"the log directory of broker 1, {data} (directory.id d1), was replaced by one of broker 3")
    assert site.said(3) == {}


def test_directories_of_two_brokers_end_the_prober_and_both_are_named(tmp_path: Path) -> None:
    site = Site()
    with site.measuring(f"a={formatted(tmp_path / 'a', 1)}", f"b={formatted(tmp_path / 'b', 3)}"):
        until(site.process.stop.is_set)
    (why,) = site.failed
    assert f"{tmp_path}/a/meta.properties" in why
    assert f"{tmp_path}/b/meta.properties" in why
