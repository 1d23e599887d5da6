"""While the API server is away demotions stay and nothing new starts; the same operator goes on when it is back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from testkit.processes.crash_points import REACHED, WENT_ON
from testkit.processes.health_requests import answers, ask

if TYPE_CHECKING:
    from bellwether.core.model.cluster import TopicPartition
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

LONGER_THAN_A_LEASE_SECONDS = 13.0
BATCH = 10  # fewer than the 13 leaders that move: they come first, in batches of their own
# Longer than any library's own patience; set it to try another one.
OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "300"))


@pytest.fixture
def breakable_apiserver(apiserver: ApiServer, bare_site: Site) -> Iterator[ApiServer]:
    """The session's API server, running again before the site is closed."""
    assert bare_site.namespace
    yield apiserver
    apiserver.resume_apiserver()
    apiserver.start_apiserver()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_demotions_stay_during_an_api_outage_and_work_continues_afterwards(
    site: Site, breakable_apiserver: ApiServer, how: str
) -> None:
    before = site.demote_and_wait(1)
    displaced = site.orders()
    if how == "frozen":
        breakable_apiserver.pause_apiserver()
    else:
        breakable_apiserver.stop_apiserver()
    away(site, displaced)
    if how == "frozen":
        breakable_apiserver.resume_apiserver()
    else:
        breakable_apiserver.start_apiserver()

    site.lift(1)
    took = site.until_restored(before, 120)
    site.tell(f"restored {took:.1f} s after the API came back")
    assert site.processes[0].alive
    site.demote(2)
    site.until_demoted(2, before)


@pytest.mark.slow
@pytest.mark.timeout(OUTAGE_SECONDS + 300)
def test_five_minutes_without_the_api_need_no_restart(site: Site, breakable_apiserver: ApiServer) -> None:
    port = site.free_port()
    site.processes[0].stop()
    process = site.operator("--health-port", str(port))
    site.until(lambda: answers(port) and ask(port, "/readyz")[0] == 200, 60, "it is ready")
    before = site.demote_and_wait(1)
    displaced = site.orders()
    breakable_apiserver.stop_apiserver()
    site.until(lambda: ask(port, "/readyz")[0] == 503, 30, "it says that it is not ready")
    assert "the Kubernetes API does not answer" in ask(port, "/readyz")[1]
    away(site, displaced, OUTAGE_SECONDS)
    assert process.alive
    assert ask(port, "/healthz") == (200, "ok\n")
    breakable_apiserver.start_apiserver()

    took = site.until(lambda: ask(port, "/readyz")[0] == 200, 60, "it is ready again", lambda: ask(port, "/readyz"))
    site.lift(1)
    restored = site.until_restored(before, 120)
    site.tell(f"{OUTAGE_SECONDS:g} s without the API: ready {took:.1f} s after it, restored {restored:.1f} s later")
    lost = [line for line in process.log.read_text().splitlines() if '"level": "error"' in line]
    assert len(lost) < 20, "said, and not at every try"


@pytest.mark.slow
def test_run_stops_before_its_next_batch_when_api_goes_away(bare_site: Site, breakable_apiserver: ApiServer) -> None:
    """The operator is frozen behind its first batch until its Lease has run out, and the API is away by then."""
    site = bare_site
    site.topics()
    site.policy(election={"batchSize": BATCH})
    before = site.orders()
    process = site.operator(program="testkit.processes.crash_points", FREEZES_AT="after elect 1")
    site.until_reported()
    site.demote(1)
    site.until(lambda: REACHED in process.log.read_text(), 30, "one batch is done")
    # Whom we ask may hear of it later than whom the operator asked.
    site.until(lambda: changed(site, before) == BATCH, 30, "all of the batch shows, and no more", site.orders)
    part = site.orders()
    assert not site.displaced(1, before)
    breakable_apiserver.stop_apiserver()
    time.sleep(LONGER_THAN_A_LEASE_SECONDS)
    process.resume()
    site.until(lambda: WENT_ON in process.log.read_text(), 30, "it goes on")
    away(site, part, 5)
    breakable_apiserver.start_apiserver()
    site.until_demoted(1, before)
    site.lift_and_wait(1, before, 120)


def changed(site: Site, before: Mapping[TopicPartition, tuple[int, ...]]) -> int:
    """How many partitions have another order than before."""
    return sum(order != before[name] for name, order in site.orders().items())


def away(site: Site, displaced: object, seconds: float = LONGER_THAN_A_LEASE_SECONDS) -> None:
    """The API is away, by default for longer than a Lease lasts; all the while nothing moves."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert site.orders() == displaced
        time.sleep(1)
