"""An operator that does all of it by itself: its schedule, the jobs, the waves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.core.model.undo_record import ApplicationEnd, PlanApplication
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from testkit.loads.load_configs import options
from testkit.loads.skewed_loads import records_a_minute, write_skewed_history
from testkit.processes.plan_jobs import run_jobs

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow, pytest.mark.timeout(900)]


def test_schedule_plan_and_waves_run_without_a_person(bare_site: Site, tmp_path: Path) -> None:
    site, uri = bare_site, str(tmp_path / "store")
    store = Store.open(f"{uri}/{site.namespace}/main")
    site.topics({site.topic: 16}, assignments={site.topic: [[1, 2, 3]] * 8 + [[1, 3, 2]] * 8})
    site.policy(
        rebalance={
            "schedule": "* * * * *",
            "approval": "Automatic",
            "minimumHours": 0,
            "minimumMeasuredPercent": 0,
            "waves": {"partitions": 5, "pauseSeconds": 1},
        }
    )
    before = site.orders()
    site.operator(*options(tmp_path, uri))
    site.until_reported()
    write_skewed_history(store, site.partitions().values(), str(site.status()["clusterId"]))

    applications: list[PlanApplication] = []

    def applied() -> bool:
        run_jobs(site)
        record = site.record()
        found = record.application if record is not None else None
        if found is not None and found.ended is not None:
            applications.append(found)  # as it was seen: the next minute's may be under way a moment later
        return bool(applications)

    took = site.until(applied, 420, "a plan was made and applied", site.rebalance)
    site.change(rebalance={"schedule": None})
    (ended,) = applications
    assert (ended.ended, dict(ended.left)) == (ApplicationEnd.DONE, {})
    led = dict.fromkeys((1, 2, 3), 0)
    for name, partition in site.partitions().items():
        assert partition.leader == partition.replicas[0]
        assert sorted(partition.replicas) == sorted(before[name])
        led[partition.leader] += records_a_minute(name.partition)
    site.tell(f"from the schedule to the last wave {took:.0f} s, {ended.moves} moves, records a minute {led}")
    assert max(led.values()) < 1.1 * sum(led.values()) / 3
    plan = read_plan(store, ended.digest)  # status may tell of the next minute's run by now
    assert plan.gap is not None
    assert plan.after.max < plan.before.max
