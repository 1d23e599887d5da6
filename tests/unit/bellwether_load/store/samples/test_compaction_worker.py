from datetime import timedelta

import pytest
import structlog

from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction_worker import Upkeep
from testkit.loads.sample_rounds import CLUSTER, DAY, MIDNIGHT, held, rows, told
from waiting import until

LATER = MIDNIGHT + timedelta(days=3)


@pytest.fixture
def store(tmp_path):
    found = Store.open(str(tmp_path))
    for minute in (0, 1, 1440, 1441, 2880, 2881):
        sample_files.write_round(found, rows(minute), f"{minute:08x}")
    return found


@pytest.fixture
def metrics():
    return SamplingMetrics()


def test_a_store_is_compacted_while_rounds_are_written(store, metrics):
    one = Upkeep(store, 2, ManualClock(LATER), metrics)
    one.start(CLUSTER)
    until(lambda: len(sample_files.days(store)) == 2)
    one.stop()
    second = DAY + timedelta(days=1)
    assert len(sample_files.current_files(store, second)) == 1
    assert held(store, second) == told(rows(1440)) + told(rows(1441))
    assert metrics.registry.get_sample_value("bellwether_sampler_removed_total", {"kind": "day"}) == 1
    assert metrics.registry.get_sample_value("bellwether_sampler_written_bytes_total", {"kind": "compacted"}) > 0


def test_old_days_go_even_before_the_cluster_is_known(store, metrics):
    Upkeep(store, 1, ManualClock(LATER), metrics).once()
    assert sample_files.days(store) == (DAY + timedelta(days=2),)


def test_what_is_left_out_is_named_once(store, metrics):
    store.write_bytes("samples/date=2021-11-23/notes.txt", b"mine")
    one = Upkeep(store, 9, ManualClock(LATER), metrics)
    with structlog.testing.capture_logs() as said:
        one.start(CLUSTER)
        until(lambda: len(sample_files.current_files(store, DAY + timedelta(days=2))) == 1)
        one.stop()
        one.once()
    warned = [line["error"] for line in said if line["log_level"] == "warning"]
    assert len(warned) == 1
    assert "notes.txt: does not have the name of a sample file" in warned[0]


def test_a_store_that_refuses_is_named_once_and_tried_again(tmp_path, metrics):
    (tmp_path / "samples").write_text("a file")
    one = Upkeep(Store.open(str(tmp_path)), 9, ManualClock(LATER), metrics)
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            one.once()
        (tmp_path / "samples").unlink()
        one.once()
    assert [line["log_level"] for line in said] == ["warning"]
    assert "samples: cannot be listed" in said[0]["error"]
    assert metrics.registry.get_sample_value("bellwether_sampler_store_failures_total") == 3


def test_stopping_what_was_never_started_is_no_trouble(store, metrics):
    Upkeep(store, 9, ManualClock(LATER), metrics).stop()
