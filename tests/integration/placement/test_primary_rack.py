"""The example of ``examples/placement/primary-rack``: a stretched cluster loses its primary rack and gets it back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from testkit.processes.sites import condition

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "primary-rack"
PRIMARY, SECOND = (1, 4), (2, 5)
ASSIGNMENT = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1], [6, 1, 2]] * 4
"""As Kafka would place them: in turn, so that each broker leads four, and each rack has a replica."""
REMOVE = '[{"op": "remove", "path": "/spec/placement"}]'


def led(site: Site) -> Counter[int | None]:
    return Counter(p.leader for p in site.partitions().values())


def met(site: Site) -> dict[str, Any]:
    return dict(condition(site.status(), "PlacementMet"))


def astray(site: Site) -> str:
    """What is said of leaders outside of the preferred racks; empty where there are none."""
    found = met(site)
    return str(found["message"]) if found.get("status") == "False" else ""


def until_led_from(site: Site, rack: tuple[int, ...], seconds: float = 60) -> None:
    site.until(lambda: set(led(site)) <= set(rack), seconds, f"all leaders are among {rack}", lambda: led(site))


@pytest.mark.slow
def test_the_example_as_its_readme_tells_it(policy_site: Site) -> None:
    site = policy_site
    site.topics({"orders": 24}, assignments={"orders": ASSIGNMENT})
    at_first = site.orders()
    spec = yaml.safe_load((EXAMPLE / "policy.yaml").read_text())["spec"]
    site.policy(placement=spec["placement"])
    site.operator()

    # Leaders come to the primary rack, in equal numbers.
    until_led_from(site, PRIMARY)
    site.until(lambda: set(led(site).values()) == {12}, 30, "both lead as many", lambda: led(site))
    site.kubectl("wait", "--for=condition=PlacementMet", "lp/main", "--timeout=60s")
    assert condition(site.status(), "PlacementFits")["status"] == "True"
    arranged = site.orders()

    # The rack is lost: Kafka itself goes on to the second one, as every order has it next.
    for broker in PRIMARY:
        site.kafka.broker(broker).kill()
    until_led_from(site, SECOND)
    # While Kafka has found out about one broker only, fewer are reported; a look may be a minute away.
    site.until(lambda: astray(site).startswith("24 of 24 partitions"), 90, "it is reported", lambda: met(site))
    assert site.orders() == arranged

    # It comes back, and leads again.
    for broker in PRIMARY:
        site.kafka.broker(broker).start()
    until_led_from(site, PRIMARY, 90)
    site.kubectl("wait", "--for=condition=PlacementMet", "lp/main", "--timeout=60s")
    assert site.orders() == arranged

    # Without the preference every order is as it was.
    site.kubectl("patch", "lp", "main", "--type=json", "-p", REMOVE)
    site.until_restored(at_first)
    site.until(lambda: not met(site), 30, "nothing is said of racks any more", lambda: met(site))
