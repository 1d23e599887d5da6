"""What a real operator writes on standard error: one JSON event a line, with what is known, and no spam."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from realparts.processes import whole_lines

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

STANDING_SECONDS = 20.0


def lines(site: Site) -> list[dict[str, Any]]:
    """Every whole line of the first operator's log. Raises ValueError for one that is no JSON."""
    return [json.loads(line) for line in whole_lines(site.processes[0].log)]


def test_each_line_is_an_event_that_names_policy_epoch_and_broker_where_they_are_known(site: Site) -> None:
    before = site.orders()
    site.demote(2)
    site.until_demoted(2, before)
    site.lift(2)
    site.until_restored(before)
    site.processes[0].stop()
    told = lines(site)
    assert all({"time", "level", "logger", "event"} <= line.keys() for line in told)
    ours = [
        line
        for line in told
        if line["logger"].startswith(("bellwether.controllers.policy_controller", "bellwether.controllers.reporting."))
    ]
    assert ours
    assert {line["policy"] for line in ours} == {f"{site.namespace}/main"}
    moved = [line for line in told if line["event"] == "leaders_moved"]
    assert moved
    assert {line["epoch"] for line in moved} == {1}
    about = [line for line in told if line["event"] == "event_emitted" and line["reason"] in ("Demoted", "Promoted")]
    assert [(line["reason"], line["broker"]) for line in about] == [("Demoted", 2), ("Promoted", 2)]


def test_lasting_error_is_logged_once_and_so_is_its_end(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy(kafka={"bootstrapServers": [f"127.0.0.1:{site.free_port()}"]})
    site.operator()
    site.until(lambda: site.ready()[0] == "ClusterUnreachable", 60, "it is named", site.ready)
    time.sleep(STANDING_SECONDS)
    told = Counter((line["event"], line["level"]) for line in lines(site))
    assert told["reconcile_failed", "warning"] == 1, "tried every five seconds, told once"
    assert max(told.values()) <= 2, told
    site.change(kafka={"bootstrapServers": site.kafka.bootstrap.split(",")})
    site.until_reported()
    again = "reconcile_recovered"  # logged after the reconcile, whose report may be read before
    site.until(lambda: any(line["event"] == again for line in lines(site)), 30, "the end of the trouble is reported")
