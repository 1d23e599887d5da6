"""Invariant 7 on real parts: of several operators one acts, another takes over, a frozen one does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testkit.processes.crash_points import REACHED, WENT_ON

if TYPE_CHECKING:
    from realparts.processes import ManagedProcess
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

QUICK = ("--lease-duration", "6", "--lease-renew", "0.5")
LEADING = "bellwether_operator_leading"
# 10 s of Lease, 4 s for a last request, a second between tries; a Lease that is given up needs none of it.
KILLED_SECONDS, STOPPED_SECONDS = 20, 3


@pytest.mark.slow
def test_a_second_operator_stands_by_and_takes_over_after_a_kill_and_after_a_stop(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy()
    acting = site.operator()
    site.until_reported()
    for _ in range(4):  # a machine that hangs for a moment makes it later, and never sooner
        acting, killed, stopped = succeeded(site, acting)
        site.tell(f"taken over {killed:.1f} s after SIGKILL, {stopped:.1f} s after SIGTERM")
        if killed < KILLED_SECONDS and stopped < STOPPED_SECONDS:
            break
    assert killed < KILLED_SECONDS
    assert stopped < STOPPED_SECONDS


def succeeded(site: Site, first: ManagedProcess) -> tuple[ManagedProcess, float, float]:
    """The active operator is killed, and its successor stopped: who acts then, and how long either change took."""
    before = site.orders()
    second = standing_by(site)

    first.kill()
    site.demote(1)
    killed = site.until(lambda: site.displaced(1, before), 60, "the second has taken over from the killed one")
    site.until_demoted(1, before)
    third = standing_by(site)

    epoch = site.status()["epoch"]
    second.ask_to_stop()
    stopped = site.until(lambda: site.status()["epoch"] > epoch, 60, "the third has taken over from the stopped one")
    site.until(lambda: not second.alive, 30, "the second has ended")
    site.lift_and_wait(1, before)
    assert third.alive
    return third, killed, stopped


def test_operator_stopped_during_demotion_leaves_the_rest_to_its_successor(bare_site: Site) -> None:
    site = bare_site
    site.topics({site.topic: 300})
    site.policy(election={"batchSize": 1})
    acting = site.operator()
    site.until_reported()
    standing_by(site)
    before, epoch, led = site.orders(), site.status()["epoch"], site.led_by(1)
    site.demote(1)
    site.until(lambda: site.led_by(1) < led, 30, "the demotion has begun")
    acting.ask_to_stop()
    stopped = site.until(lambda: (record := site.record()) and record.epoch > epoch, 60, "the other has taken over")
    left = site.led_by(1)
    site.tell(f"taken over {stopped:.1f} s after SIGTERM, with {left} of {led} leaders to move")
    site.until_demoted(1, before)
    assert 0 < left < led
    assert stopped < KILLED_SECONDS / 2, "the Lease was not released"


@pytest.mark.slow
def test_an_operator_frozen_before_its_request_and_continued_later_loses_no_baseline(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy()
    before = site.orders()
    frozen = site.operator(*QUICK, program="testkit.processes.crash_points", FREEZES_AT="before reorder 1")
    site.until_reported()
    site.demote(1)
    site.until(lambda: REACHED in frozen.log.read_text(), 30, "the first operator is frozen")
    site.operator(*QUICK)
    site.until_demoted(1, before)
    site.lift_and_wait(1, before)

    frozen.resume()
    site.until(lambda: "leadership_lost" in frozen.log.read_text(), 30, "the one that was frozen has noticed")
    site.until_restored(before)
    site.until(
        lambda: site.status()["displacedPartitions"] == 0 and site.restored(before), 30, "it is said", site.status
    )
    assert WENT_ON not in frozen.log.read_text(), "it was too late to send its request"


@pytest.mark.slow
def test_operator_frozen_past_its_lease_and_continued_does_not_fight(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy()
    before = site.orders()
    port = site.free_port()
    frozen = site.operator(*QUICK, "--metrics-port", str(port))
    site.until_reported()
    site.demote(1)
    site.until_demoted(1, before)
    frozen.pause()
    site.operator(*QUICK)
    site.lift(1)
    site.demote(2)
    site.until_demoted(2, before)

    epoch = site.status()["epoch"]
    frozen.resume()
    site.until(lambda: waits(site, port), 30, "the one that was frozen has noticed")
    site.lift_and_wait(2, before)
    # What it was saying as it froze may have come out late; a take-over would have raised the epoch.
    site.until(lambda: site.status()["epoch"] == epoch, 30, "the one that was frozen has taken nothing back")


def standing_by(site: Site) -> ManagedProcess:
    """Another operator, that watches the policy and says that it does not lead."""
    port = site.free_port()
    process = site.operator("--metrics-port", str(port))
    site.until(lambda: waits(site, port), 60, "the other operator stands by")
    return process


def waits(site: Site, port: int) -> bool:
    """Whether the operator of that metrics port knows the policy and says that it does not lead."""
    try:
        return f'{LEADING}{{namespace="{site.namespace}",policy="main"}} 0.0' in site.scrape(port)
    except OSError:
        return False
