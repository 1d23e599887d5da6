"""The metrics that an operator promises of its own work, scraped from a running one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def test_the_operator_serves_what_it_does_what_it_knows_and_what_it_holds(bare_site: Site) -> None:
    site = bare_site
    single = f"{site.topic}-single"
    site.topics({site.topic: 12, single: 2}, assignments={single: [[1], [1]]})
    site.policy()
    site.policy("lost", kafka={"bootstrapServers": [f"127.0.0.1:{site.free_port()}"]})
    port = site.free_port()
    site.operator("--metrics-port", str(port))
    site.until_reported()
    site.voice("zone-a").calls_well(1, 2, 3)
    before = {name: order for name, order in site.orders().items() if name.topic == site.topic}
    site.demote(1)
    site.until(lambda: site.displaced(1, before), 60, "broker 1 is displaced", site.partitions)
    mine = f'namespace="{site.namespace}",policy="main"'
    wanted = [
        f"bellwether_reconcile_idle{{{mine}}} 1.0",
        f"bellwether_operator_leading{{{mine}}} 1.0",
        f'bellwether_broker_demoted{{broker="1",{mine}}} 1.0',
        f'bellwether_broker_leaders{{broker="1",{mine}}} 2.0',
        f'bellwether_broker_verdict{{broker="2",{mine},verdict="Healthy"}} 1.0',
        f'bellwether_partition_moves_blocked{{{mine},reason="OnlyReplica"}} 2.0',
        f'bellwether_reconcile_errors_total{{kind="Transient",namespace="{site.namespace}",policy="lost"}}',
        f'bellwether_policy_error{{namespace="{site.namespace}",policy="lost",reason="ClusterUnreachable"}} 1.0',
        f'bellwether_broker_verdict_reason{{broker="2",cause="",{mine},reason="SignalsPassing"}} 1.0',
        f"bellwether_policy_enforcing{{{mine}}} 1.0",
        f'bellwether_signals{{{mine},state="passing",type="ExternalReachability"}} 3.0',
        f'bellwether_kafka_requests_total{{namespace="{site.namespace}",outcome="ok",policy="main",request="ElectLeaders"}}',
        'bellwether_kubernetes_requests_total{outcome="ok",resource="brokerhealths",verb="patch"}',
    ]
    site.until(lambda: all(line in site.scrape(port) for line in wanted), 30, str(wanted), lambda: site.scrape(port))
    age = f'bellwether_signal_age_seconds{{{mine},source="zone-a",type="ExternalReachability"}}'
    # Ages are reported when the verdicts of a turn have been written.
    site.until(lambda: 0 <= float(values_of(site, port).get(age, -1)) < 15, 30, "zone-a reports")
    values = values_of(site, port)
    assert float(values[f"bellwether_reconcile_duration_seconds_count{{{mine}}}"]) > 0
    assert float(values[f"bellwether_reconcile_duration_seconds_sum{{{mine}}}"]) > 0
    assert float(values[f"bellwether_partitions_reordered_total{{{mine}}}"]) >= len(site.baselines(site.record()))


def values_of(site: Site, port: int) -> dict[str, str]:
    """What is served now: name and labels, and the value."""
    return dict(line.rsplit(" ", 1) for line in site.scrape(port).splitlines() if not line.startswith("#"))
