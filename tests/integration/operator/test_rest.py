"""Invariant 8 on real parts: a settled cluster causes no mutation, in Kafka or in the API, Lease renewals aside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

QUIET_SECONDS = 10.0


def test_a_settled_cluster_gets_no_mutation_with_and_without_demotions(shared_site: Site) -> None:
    site = shared_site
    voices = [site.voice("zone-a"), site.voice("zone-b")]
    for voice in voices:
        voice.calls_well(1, 2, 3)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 30, "all are Healthy")
    comes_to_rest(site)
    site.demote_and_wait(1)
    comes_to_rest(site)  # metadata is polled every 5 s now


def comes_to_rest(site: Site) -> None:
    """Within a minute nothing changes any more for ten seconds; what is settled and writes on never gets there."""
    end = time.monotonic() + 60
    seen, since = facts(site), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(QUIET_SECONDS / 4)
        now = facts(site)
        if now != seen:
            changed = [key for key in now.keys() | seen.keys() if now.get(key) != seen.get(key)]
            assert time.monotonic() < end, f"still changing: {changed}\n{site.logs()}"
            seen, since = now, time.monotonic()


def facts(site: Site) -> dict[str, object]:
    """Everything that a mutation would change: resourceVersions, and the epochs, orders and ISRs of Kafka."""
    kafka = {str(name): (p.leader_epoch, p.leader, p.replicas, p.isr) for name, p in site.partitions().items()}
    versions = site.versions()
    assert {name.partition("/")[0] for name in versions} >= {"LeadershipPolicy", "BrokerHealth", "ConfigMap"}
    return {**versions, **kafka}
