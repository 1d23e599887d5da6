"""While the API server is away demotions stand and nothing new starts; the same operator goes on when it is back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

LONGER_THAN_A_LEASE_SECONDS = 13.0


@pytest.fixture
def breakable_apiserver(apiserver: ApiServer, bare_site: Site) -> Iterator[ApiServer]:
    """The session's API server, running again before the site is closed."""
    assert bare_site.namespace
    yield apiserver
    apiserver.resume_apiserver()
    apiserver.start_apiserver()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_demotions_stand_while_the_api_is_away_and_work_goes_on_afterwards(
    site: Site, breakable_apiserver: ApiServer, how: str
) -> None:
    before = site.orders()
    site.demote(1)
    site.until_demoted(1, before)
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


def away(site: Site, displaced: object) -> None:
    """The API is away for longer than a Lease lasts; all the while nothing moves."""
    end = time.monotonic() + LONGER_THAN_A_LEASE_SECONDS
    while time.monotonic() < end:
        assert site.orders() == displaced
        time.sleep(1)
