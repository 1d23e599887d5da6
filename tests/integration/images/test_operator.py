"""The operator in its container against the real API server and real brokers."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES
from images import measuring
from images.recipe import ROOT
from images.running import Container, Room, Unpacked
from realparts.ports import HeldPorts
from testkit.kafka.formatted_directories import formatted
from testkit.processes.sites import Site
from waiting import until

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

pytestmark = [pytest.mark.image, pytest.mark.apiserver]

REST_MEBIBYTES = 200.0
REST_SHARE = 0.10
REST_SECONDS = 10.0


class Begun:
    """An operator in a container, and where it answers."""

    def __init__(self, container: Container, ports: HeldPorts, health: int) -> None:
        self.container = container
        self._ports = ports  # no other process may have them meanwhile
        self._health = f"http://127.0.0.1:{health}"

    def answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self._health + path, timeout=5) as answer:  # noqa: S310 - on 127.0.0.1
                return bool(answer.status == 200)
        except OSError:
            return False

    def until(self, wanted: Callable[[], bool], seconds: float) -> float:
        began = time.monotonic()
        until(wanted, seconds, alive=lambda: self.container.running, seen=self.container.said)
        return time.monotonic() - began


def begin(start: Any, image: Unpacked, namespace: str, access: Room) -> Begun:
    ports = HeldPorts()
    metrics, health = ports.take(), ports.take()
    options = ["-n", namespace, "--lease-namespace", namespace, "--log-format", "json"]
    options += ["--metrics-port", str(metrics), "--health-port", str(health)]
    return Begun(start(image, "operator", *options, room=access), ports, health)


def test_it_watches_soon_and_rests_small(
    images: Callable[[str], Unpacked], start: Any, apiserver: ApiServer, access: Room
) -> None:
    apiserver.apply(ROOT / "crds")
    namespace = apiserver.create_namespace("image-at-rest")
    begun = begin(start, images("operator"), namespace, access)
    watching = begun.until(lambda: '"operator_started"' in begun.container.said(), 60)
    ready = watching + begun.until(lambda: begun.answers("/readyz"), 60)
    begun.until(lambda: begun.answers("/healthz"), 30)
    time.sleep(5)  # what a start leaves to do
    share = measuring.processor_share(begun.container, REST_SECONDS)
    resident = measuring.resident_mebibytes(begun.container)
    measuring.note(
        "operator",
        exec_to_watching_seconds=round(watching, 2),
        exec_to_ready_seconds=round(ready, 2),
        rest={"resident_mebibytes": resident, "processor_share": share, "over_seconds": REST_SECONDS, "policies": 0},
    )
    assert resident < REST_MEBIBYTES
    assert share < REST_SHARE
    begun.container.terminate()
    assert begun.container.wait(30) == 0, begun.container.said()


@pytest.mark.kafka
def test_it_judges_real_brokers_and_gives_its_lease_back_when_asked_to_end(
    images: Callable[[str], Unpacked], start: Any, site: Site, access: Room
) -> None:
    site.policy(mode="Observe")
    begun = begin(start, images("operator"), site.namespace, access)
    first = begun.until(site.settled, 90)
    assert site.verdict(1)[0] in ("Healthy", "Unknown")
    assert held(site)
    time.sleep(5)
    share = measuring.processor_share(begun.container, REST_SECONDS)
    resident = measuring.resident_mebibytes(begun.container)
    begun.container.terminate()
    assert begun.container.wait(30) == 0, begun.container.said()
    assert held(site) == []
    measuring.note(
        "operator",
        exec_to_first_verdict_seconds=round(first, 2),
        one_policy_three_brokers={"resident_mebibytes": resident, "processor_share": share},
    )


def held(site: Site) -> list[str]:
    """The Leases that are held."""
    leases = site.api.list(LEASES, site.namespace)
    return [lease["metadata"]["name"] for lease in leases if lease["spec"].get("holderIdentity")]


@pytest.mark.kafka
def test_it_moves_leaders_off_a_demoted_broker_and_back(
    images: Callable[[str], Unpacked], start: Any, site: Site, access: Room
) -> None:
    site.policy()
    begun = begin(start, images("operator"), site.namespace, access)
    begun.until(site.settled, 90)
    baselines = site.demote_and_wait(2)
    site.lift_and_wait(2, baselines)


@pytest.mark.kafka
@pytest.mark.parametrize("kind", ["reachability", "storage"])
def test_a_prober_reports_from_its_container(
    images: Callable[[str], Unpacked], start: Any, site: Site, access: Room, tmp_path: Path, kind: str
) -> None:
    image = images("operator")
    site.policy(mode="Observe")
    operator = begin(start, image, site.namespace, access)
    operator.until(site.settled, 90)
    data = formatted(tmp_path / "data", 1, site.status()["clusterId"])
    data.chmod(0o777)
    room = Room(access.environment, access.shown, {"/run/data": data})
    own = {
        "reachability": ["--vantage", "zone-a"],
        "storage": ["--directory", "/run/data"],
    }[kind]
    prober = start(image, "probe", kind, "--policy", "main", "-n", site.namespace, *own, room=room)

    def passing() -> bool:
        assert prober.running, prober.said()
        return any(entry.get("reading") == "Passing" for entry in site.health(1).get("signals", ()))

    site.until(passing, 60, "the prober's entry passes", prober.said)
    resident, share = measuring.resident_mebibytes(prober), measuring.processor_share(prober, 10)
    measuring.note("operator", **{f"probe_{kind}": {"resident_mebibytes": resident, "processor_share": share}})
    prober.terminate()
    assert prober.wait(20) == 0, prober.said()
