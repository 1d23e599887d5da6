"""The example of ``examples/placement/capacity``: a demotion moves what the others can carry, and names the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testkit.processes.readme_runner import Guide

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "capacity"


def until_led(site: Site, *wanted: int) -> None:
    """Status says so already; whom we ask may hear of it a moment later than whom the operator asked."""
    site.until(lambda: led(site) == list(wanted), 10, f"the brokers lead {wanted}", lambda: led(site))


def led(site: Site) -> list[int]:
    return [site.led_by(broker) for broker in (1, 2, 3)]


def settled_on(site: Site) -> bool:
    """Whether the operator has taken up the policy as it is now."""
    policy = site.policy_now()
    return bool(policy["status"].get("observedGeneration") == policy["metadata"]["generation"])


def test_the_example_as_its_readme_tells_it(policy_site: Site) -> None:
    site = policy_site
    site.adopt("orders")
    site.operator()
    guide = Guide(site, EXAMPLE)
    guide.follow("The cluster")
    at_first = site.orders()
    until_led(site, 4, 2, 2)

    # Two leaders fit elsewhere, two stay; these keep their orders.
    guide.follow("The demotion")
    until_led(site, 2, 3, 3)
    staying = {name: p for name, p in site.partitions().items() if p.leader == 1}
    assert {name.partition for name in staying} == {2, 3}
    assert all(p.replicas == at_first[name] for name, p in staying.items())
    assert all(p.replicas[-1] == 1 for name, p in site.partitions().items() if name not in staying)

    # Room appears, and the rest moves. A limit that is lowered below the present count takes nothing away.
    guide.follow("Room for the rest")
    site.until(lambda: all(order[-1] == 1 for order in site.orders().values()), 10, "1 is last", site.orders)
    until_led(site, 0, 4, 4)
    moved = site.orders()
    site.until(lambda: settled_on(site), 30, "the lower limit is taken up", site.status)
    assert (site.orders(), led(site)) == (moved, [0, 4, 4])
    assert not site.status().get("blockedByReason")

    guide.follow("The end")
    site.until_restored(at_first)
    until_led(site, 4, 2, 2)
