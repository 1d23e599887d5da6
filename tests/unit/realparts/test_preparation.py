"""Parts are made side by side, each is there as soon as it is made, and the first failure ends all."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from rich.console import Console

from realparts import gotools, toolruns
from realparts.gotools import GoTool
from realparts.parts import PARTS, Part, Use, used_by
from realparts.preparation import Preparation, Step
from realparts.preparation_view import action, events, headline, live_view
from realparts.toolruns import DownloadFailed

HERE = Path("here")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLWETHER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolruns, "_stopped", threading.Event())


def test_a_part_is_there_while_another_is_still_made() -> None:
    go_on = threading.Event()

    def slow() -> Path:
        assert go_on.wait(60)
        return HERE

    with Preparation([Part("slow", slow), Part("quick", lambda: HERE)]) as preparation:
        assert preparation.wait("quick") == {"quick": HERE}
        assert preparation.steps["slow"].ended is None
        go_on.set()
        assert set(preparation.wait()) == {"slow", "quick"}


def test_programs_are_compiled_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = threading.Lock()

    def compile_it() -> Path:
        assert alone.acquire(blocking=False)
        threading.Event().wait(0.05)
        alone.release()
        return HERE

    monkeypatch.setattr(gotools, "modules", lambda _: 1)
    tools = [GoTool(name, "package") for name in ("toxiproxy", "helm", "prometheus")]
    with Preparation([Part(tool.name, compile_it, Use.DEMO, tool) for tool in tools]) as preparation:
        assert len(preparation.wait()) == 3


def test_a_failure_ends_the_wait_for_another_part() -> None:
    ended = threading.Event()

    def never() -> Path:
        assert ended.wait(60)
        return HERE

    def fail() -> Path:
        raise DownloadFailed("no network")

    with Preparation([Part("never", never), Part("fails", fail)]) as preparation:
        with pytest.raises(DownloadFailed, match="no network"):
            preparation.wait("never")
        ended.set()


def test_an_optional_part_may_be_missing() -> None:
    def fail() -> Path:
        raise DownloadFailed("no Java")

    with Preparation([Part("spark-java", fail, optional=True), Part("kafka", lambda: HERE)]) as preparation:
        assert preparation.wait() == {"kafka": HERE}
    assert preparation.steps["spark-java"].skipped == "no Java"


def test_a_full_disk_is_one_sentence() -> None:
    def fill() -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        pytest.raises(DownloadFailed, match=r"the disk is full: free some space.*MB are free"),
        Preparation([Part("kafka", fill)]) as preparation,
    ):
        preparation.wait()


def test_the_demo_needs_neither_prometheus_nor_helm_nor_spark() -> None:
    names = {part.name for part in used_by(Use.DEMO)}
    assert names == {"java", "kafka", "slowdisk", "kubectl", "etcd", "toxiproxy", "kube-apiserver"}
    assert set(used_by(Use.TESTS)) == set(PARTS)


def test_the_time_that_is_left_is_estimated_from_the_packages() -> None:
    step = Step("kube-apiserver", "500 of 2000 packages", started=100.0)
    assert action(step, 160.0) == "500 of 2,000 packages compiled, about 3 min left"
    step.say("20 of 2000 packages")
    assert action(step, 160.0) == "20 of 2,000 packages compiled"


def test_a_log_gets_a_line_for_each_beginning_and_end_but_for_what_was_there() -> None:
    reported: dict[str, str] = {}
    there = Step("java", started=0.0, ended=0.1)
    made = Step("kafka", "fetching 46 jars", started=0.0)
    assert events([there, made], reported, 2.0) == ["kafka: fetching 46 jars"]
    assert events([there, made], reported, 3.0) == []
    made.ended = 8.0
    assert events([there, made], reported, 9.0) == ["kafka: ready after 8 s"]
    assert events([there, made], reported, 10.0) == []


def test_the_view_says_what_is_done_at_work_and_still_to_come() -> None:
    preparation = Preparation([Part(name, lambda: HERE) for name in ("java", "kafka", "kube-apiserver")], began=0.0)
    preparation.steps["java"].started = preparation.steps["java"].ended = 1.0
    preparation.steps["kafka"].started = 2.0
    preparation.steps["kafka"].say("12 of 46 jars")
    console = Console(width=80)
    with console.capture() as shown:
        console.print(live_view(preparation, "getting ready", 65.0))
    lines = [line.rstrip() for line in shown.get().splitlines()]
    assert lines == [
        "getting ready: 1 of 3 done, 1:05",
        "  kafka                      1:03  12 of 46 jars",
        "  still to come: kube-apiserver",
    ]
    assert headline(preparation, "getting ready", 65.0) == lines[0]
