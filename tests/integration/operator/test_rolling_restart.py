"""The example of ``examples/placement/rolling-restart`` on real brokers, by its script and by its commands.

And what else a restart may meet: partitions that stay, restarts seen from pods, overrides that contradict themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import PODS
from bellwether.ports.errors import Transient
from testkit.kubernetes.broker_pods import pod
from testkit.processes.sites import condition, demoted
from waiting import TooLate, limit

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "rolling-restart"
ASKED = ("drain", "--policy", "main")
REMOVE = '[{"op": "remove", "path": "/spec/override"}]'


def environment(site: Site) -> dict[str, str]:
    """The commands of people: bellwether as it is installed here, kubectl against this API."""
    return {
        **os.environ,
        "KUBECONFIG": str(site.server.kubeconfig),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def drained(site: Site, broker: int) -> int:
    """How many partitions a broker leads that is said to be drained.

    Whom we ask may hear of the last election a moment later than whom the operator asked.
    """
    assert condition(site.health(broker), "Drained")["status"] == "True"
    with suppress(TooLate):
        site.until(lambda: site.led_by(broker) == 0, 5, "it leads nothing")
    return site.led_by(broker)


@contextmanager
def watching(site: Site) -> Iterator[list[str]]:
    """Whatever partition of the site has no leader, watched all the time by a thread."""
    problems: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            with suppress(Transient):  # the broker that was asked has just been stopped
                problems.extend(str(name) for name, p in site.partitions().items() if p.leader is None)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield problems
    finally:
        over.set()
        watcher.join(limit(10))


@pytest.mark.slow
def test_the_script_restarts_every_broker_while_it_leads_nothing_and_all_leaders_are_back(site: Site) -> None:
    before, orders = {b: site.led_by(b) for b in (1, 2, 3)}, site.orders()
    asked, done = site.directory / "asked", site.directory / "done"
    asked.mkdir()
    done.mkdir()
    restart = site.directory / "restart"
    restart.write_text(f"#!/bin/sh\ntouch {asked}/$1\nuntil [ -e {done}/$1 ]; do sleep 0.1; done\n")
    restart.chmod(0o755)
    command = [EXAMPLE / "rolling-restart.sh", "main", site.namespace, restart, "1", "2", "3"]
    log = site.directory / "script.log"
    led: dict[int, int] = {}
    with watching(site) as problems, log.open("w") as out:
        script = subprocess.Popen(command, env=environment(site), stdout=out, stderr=subprocess.STDOUT)
        try:
            for broker in (1, 2, 3):
                site.until((asked / str(broker)).exists, 60, f"broker {broker} is drained", log.read_text)
                led[broker] = drained(site, broker)
                site.kafka.broker(broker).restart()
                (done / str(broker)).touch()
            assert script.wait(limit(120)) == 0, log.read_text()
        finally:
            script.kill()
            script.wait()
    assert led == {1: 0, 2: 0, 3: 0}
    assert problems == []
    assert site.orders() == orders
    site.until(lambda: {b: site.led_by(b) for b in (1, 2, 3)} == before, 30, "all leaders are back", site.partitions)
    said = log.read_text()
    for broker in (1, 2, 3):
        assert f"broker {broker} is drained; it is safe to stop" in said
        assert f"broker {broker} is free to lead" in said


@pytest.mark.slow
def test_kubectl_alone_drains_waits_and_hands_back_around_a_restart(site: Site) -> None:
    before, leaders = site.orders(), site.led_by(2)
    site.kubectl("patch", "bh", "main-2", "--type=merge", "--patch-file", str(EXAMPLE / "drain.yaml"))
    met = site.kubectl("wait", "--for=condition=Drained", "bh/main-2", "--timeout=60s")
    assert "condition met" in met
    assert drained(site, 2) == 0
    assert site.verdict(2) == ("Unknown", "InMaintenance")
    site.kafka.broker(2).restart()
    assert site.led_by(2) == 0
    site.kubectl("patch", "bh", "main-2", "--type=json", "-p", REMOVE)
    site.until_restored(before)
    site.until(lambda: site.led_by(2) == leaders, 30, "its leaders are back", site.partitions)
    site.until(lambda: not condition(site.health(2), "Drained"), 30, "nothing is said of it any more")


@pytest.mark.slow
def test_drain_moves_what_others_can_lead_and_names_what_stays(site: Site) -> None:
    alone = f"{site.topic}-alone"
    site.topics({alone: 1}, assignments={alone: [[3]]})
    site.until(lambda: site.led_by(3) and (site.health(3).get("leaders") or 0) >= 1, 20, "it is seen")
    held = site.run(*ASKED, "3", "--wait", "--timeout", "10s", exits=3)
    assert f"({alone}-0): raise the replication factor" in held.stderr
    assert "(NoFaultTolerance)" in held.stderr
    assert site.led_by(3) == 1, "all others have moved"
    assert condition(site.health(3), "Drained")["reason"] == "NoFaultTolerance"
    # The policy's status is written after the brokers'.
    text = "broker 3 is in maintenance and not safe to stop"
    site.until(lambda: text in condition(site.status(), "Ready").get("message", ""), 30, "named", site.status)
    site.run(*ASKED, "3", "--end", "--wait", "--timeout", "30s")


@pytest.mark.slow
def test_a_broker_is_safe_to_stop_only_while_its_partitions_can_be_written_without_it(site: Site) -> None:
    needed = f"{site.topic}-needed"
    site.topics({needed: 1}, assignments={needed: [[1, 2, 3]]}, configs={"min.insync.replicas": "2"})
    site.kafka.broker(3).kill()
    site.until(lambda: {p.isr for p in site.partitions(needed).values()} <= {(1, 2), (2, 1)}, 60, "it left the ISR")
    held = site.run(*ASKED, "1", "--wait", "--timeout", "15s", exits=3)
    assert f"without broker 1 ({needed}-0: ISR [1, 2], min.insync.replicas 2): wait until" in held.stderr
    assert "(NoFaultTolerance)" in held.stderr
    assert site.led_by(1) == 0
    site.run(*ASKED, "1", "--wait", "--timeout", "30s", "--accept-unavailable-writes")
    assert condition(site.health(1), "Drained")["reason"] == "LeadsNothing"
    site.kafka.broker(3).start()
    safe = site.run(*ASKED, "1", "--wait", "--timeout", "120s")
    assert "broker 1 is drained; it is safe to stop" in safe.stdout
    assert {len(p.isr) for p in site.partitions(needed).values()} == {3}


def test_restart_that_is_seen_from_pods_drains_and_hands_back(shared_site: Site) -> None:
    site = shared_site
    before = site.orders()
    for broker in (1, 2, 3):
        stand(site, broker)
    site.change(maintenance={"pods": {"selector": "app=kafka"}})
    stand(site, 1, ready=False)
    site.until_demoted(1, before)
    assert condition(site.health(1), "Demoted")["reason"] == "Restarting"
    site.until(lambda: condition(site.health(1), "Drained").get("status") == "True", 30, "it is drained", site.status)
    site.kubectl("delete", "pod", "kafka-1", "--grace-period=0", "--force")
    time.sleep(4)  # longer than it takes to look: a pod that is gone is still being made again
    assert demoted(site.health(1))
    stand(site, 1)
    site.until_restored(before)
    site.until(lambda: not demoted(site.health(1)), 30, "it leads again")


def stand(site: Site, broker: int, *, ready: bool = True) -> None:
    """A pod in that state, as a kubelet would say it."""
    name, body = f"kafka-{broker}", pod(broker, ready=ready)
    spec = {"containers": [{"name": one, "image": one} for one in ("sidecar", "kafka")]}
    whole = {"metadata": {"labels": {"app": "kafka"}}, "spec": spec}
    site.api.apply(PODS, site.namespace, name, whole, "kubelet")
    site.api.merge(PODS, site.namespace, name, {"status": body["status"]}, "status")
