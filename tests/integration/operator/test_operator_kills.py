"""Invariant 6 on real parts: operators are killed one after another, and baselines are restored exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from testkit.processes.crash_points import REACHED

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

# A third of the 13 leaders that move: elections are left for the successor of an operator that died.
BATCH = 5
POINTS = ("before reorder 1", "after reorder 1", "after elect 1")
# A successor waits this Lease's duration and 4 s more, the longest that a request takes.
QUICK = ("--lease-duration", "6", "--lease-renew", "0.5")
LEADS = '"leadership_acquired"'


@pytest.mark.slow
def test_a_demotion_is_finished_though_three_operators_are_killed_in_the_middle_of_it(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy(election={"batchSize": BATCH})
    before = site.orders()
    site.operator(*QUICK, program="testkit.processes.crash_points", DIES_AT=POINTS[0])
    site.until_reported()
    die_one_after_another(site, lambda: site.demote(1))
    site.until_demoted(1, before)
    site.lift_and_wait(1, before)


@pytest.mark.slow
def test_a_promotion_is_finished_though_three_operators_are_killed_in_the_middle_of_it(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy(election={"batchSize": BATCH})
    before = site.orders()
    first = site.operator(*QUICK)
    site.until_reported()
    site.demote(1)
    site.until_demoted(1, before)
    first.stop()
    epoch = site.status()["epoch"]
    site.operator(*QUICK, program="testkit.processes.crash_points", DIES_AT=POINTS[0])
    site.until(lambda: site.status()["epoch"] > epoch, 30, "the next operator has taken over")
    assert site.displaced(1, before)
    die_one_after_another(site, lambda: site.lift(1))
    site.until_restored(before)
    site.until(lambda: site.status()["displacedPartitions"] == 0, 30, "the restoration is reported", site.status)


def die_one_after_another(site: Site, begin: Callable[[], None]) -> None:
    """``begin``, and let each operator die at its point; the next one alone stands by by then."""
    dying, before = site.processes[-1], site.orders()
    begin()
    for number, following in enumerate((*POINTS[1:], None)):
        # Of two that stand by, either takes over: the next one starts once this one leads.
        site.until(lambda one=dying: LEADS in one.log.read_text(), 60, "an operator leads")  # type: ignore[misc]
        if following is None:
            successor = site.operator(*QUICK)
        else:
            successor = site.operator(*QUICK, program="testkit.processes.crash_points", DIES_AT=following)
        point = POINTS[number]
        site.until(lambda one=dying: not one.alive, 60, f"an operator is dead: {point}")  # type: ignore[misc]
        assert f"{REACHED} {point}" in dying.log.read_text()
        if number == 0:
            record = site.record()
            assert record is not None
            assert record.entries, "the undo record is durable before the first reorder"
            assert site.orders() == before
        dying = successor
