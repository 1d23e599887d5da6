from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling import rollup_worker
from bellwether_load.sampling.rollup_worker import RollupWorker
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples.sample_files import list_rounds, write_round
from testkit.loads.sample_rounds import MIDNIGHT, rows
from waiting import until

HOUR = 3_600
LATER = MIDNIGHT + timedelta(days=3)


@pytest.fixture
def metrics() -> SamplingMetrics:
    return SamplingMetrics()


@pytest.fixture(autouse=True)
def few_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup_worker, "SAMPLE_HOURS", 2)


def worker(path: Path, metrics: SamplingMetrics, days: int | None = 9, now=LATER) -> tuple[RollupWorker, Store]:
    store = Store.open(str(path))
    return RollupWorker(store, str(path), days, ManualClock(now), metrics), store


def sampled(store: Store, *hours: int) -> None:
    for hour in hours:
        for minute in range(3):
            write_round(store, rows(60 * hour + minute))


def hours_of(files) -> set[int]:
    first = int(MIDNIGHT.timestamp())
    return {(getattr(file, "at", None) or file.hour) // HOUR - first // HOUR for file in files}


def test_hours_are_rolled_up_while_rounds_are_written(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics)
    sampled(store, 0, 1)
    one.start()
    until(lambda: hours_of(list_rollups(store)) == {0, 1})
    one.stop()


def test_samples_are_kept_for_the_newest_hours_only(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics)
    sampled(store, 0, 5, 6, 7)
    one.once()
    assert hours_of(list_rounds(store).rounds) == {6, 7}
    assert hours_of(list_rollups(store)) == {0, 5, 6, 7}
    before = {file.path: store.read_bytes(file.path) for file in list_rollups(store)}
    one.once()
    assert {file.path: store.read_bytes(file.path) for file in list_rollups(store)} == before


def test_samples_stay_until_they_are_rolled_up(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics)
    sampled(store, 0, 1, 2, 3)
    (tmp_path / "rollups").write_text("no folder")
    one.once()
    assert hours_of(list_rounds(store).rounds) == {0, 1, 2, 3}


def test_rollups_stay_while_no_days_are_known(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics, days=None)
    sampled(store, 0, 24, 48)
    one.once()
    assert hours_of(list_rollups(store)) == {0, 24, 48}


def test_old_rollups_go_by_days_that_have_some(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics, days=2)
    sampled(store, 0, 24, 48)
    one.once()
    assert hours_of(list_rollups(store)) == {24, 48}
    assert not store.exists("rollups/cluster=MkU3OEVBNTcwNTJENDM2Qg/date=2021-11-21")


def test_rollups_stay_as_long_as_their_samples(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics, days=1)
    sampled(store, 0, 1, 24)
    one.once()
    before = {file.path: store.read_bytes(file.path) for file in list_rollups(store)}
    assert hours_of(list_rounds(store).rounds) == hours_of(list_rollups(store)) == {1, 24}
    one.once()
    assert {file.path: store.read_bytes(file.path) for file in list_rollups(store)} == before


def test_a_clock_that_was_ahead_removes_nothing_and_is_named_once(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics, days=2)
    sampled(store, 0, 1, 24 * 400, 24 * 500)
    with structlog.testing.capture_logs() as said:
        one.once()
        one.once()
    assert hours_of(list_rollups(store)) == {0, 1}
    assert hours_of(list_rounds(store).rounds) == {0, 1, 24 * 400, 24 * 500}
    assert [line["files"] for line in said if line["event"] == "samples_ahead"] == [6]


def test_interrupted_writes_go_and_foreign_files_stay(tmp_path: Path, metrics: SamplingMetrics) -> None:
    one, store = worker(tmp_path, metrics, now=LATER + timedelta(days=3650))
    for path in ("samples/_tmp-12345678-x", "rollups/_tmp-12345678-x", "samples/notes.txt"):
        store.write_bytes(path, b"")
    one.once()
    assert [file.path for file in (*store.list(), *store.list(temporary=True))] == ["samples/notes.txt"]


def test_a_store_that_refuses_is_named_once_and_tried_again(tmp_path: Path, metrics: SamplingMetrics) -> None:
    (tmp_path / "samples").write_text("a file")
    one, _ = worker(tmp_path, metrics)
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            one.once()
        (tmp_path / "samples").unlink()
        one.once()
    assert [line["log_level"] for line in said] == ["warning"]
    assert "samples: cannot be listed" in said[0]["error"]
    assert metrics.registry.get_sample_value("bellwether_sampler_store_failures_total") == 3


def test_another_failure_of_the_store_is_named_too(tmp_path: Path, metrics: SamplingMetrics) -> None:
    (tmp_path / "samples").write_text("a file")
    one, store = worker(tmp_path, metrics)
    with structlog.testing.capture_logs() as said:
        one.once()
        (tmp_path / "samples").unlink()
        sampled(store, 0)
        (tmp_path / "rollups").write_text("no folder")
        one.once()
        one.once()
    assert ["samples: cannot be listed" in line["error"] for line in said] == [True, False]


def test_an_unexpected_error_is_logged_and_the_thread_goes_on(
    tmp_path: Path, metrics: SamplingMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, store = worker(tmp_path, metrics)
    sampled(store, 0)
    monkeypatch.setattr(rollup_worker, "PERIOD_SECONDS", 0.01)
    with monkeypatch.context() as broken, structlog.testing.capture_logs() as said:
        broken.setattr(rollup_worker, "due_hours", [].__getitem__)
        one.start()
        until(lambda: said)
    until(lambda: hours_of(list_rollups(store)) == {0})
    assert (one.problems(), "TypeError" in said[0]["error"]) == ([], True)
    one.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ended_by_itself_is_a_problem(
    tmp_path: Path, metrics: SamplingMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = worker(tmp_path, metrics)

    def end(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(rollup_worker, "list_rounds", end)
    assert one.problems() == []
    one.start()
    until(one.problems)
    one.stop()
    assert one.problems() == []


def test_stopping_what_was_never_started_is_no_trouble(tmp_path: Path, metrics: SamplingMetrics) -> None:
    worker(tmp_path, metrics)[0].stop()
