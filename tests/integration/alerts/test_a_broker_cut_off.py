"""The main fault on a real Prometheus: alerts fire and stop, and every panel of the dashboards shows something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testkit.alerts.dashboard_panels import boards, panels, sent

if TYPE_CHECKING:
    from collections.abc import Collection

    from realparts.kafka import KafkaCluster
    from testkit.alerts.monitored_site import WatchedSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.prometheus]

OF_A_SICK_BROKER = ("BellwetherBrokerSick", "BellwetherBrokerDemoted", "BellwetherPartitionMovesBlocked")

NO_OTHER_LEADER = ("OnlyReplica", "NoHealthyIsrMember")
NO_AGENT = "no broker of the site has a quarantine agent"
NEVER_SHOWN = {
    "on-call.json: Quarantined A": NO_AGENT,
    "on-call.json: Quarantined B": NO_AGENT,
    "on-call.json: Quarantines B": NO_AGENT,
    "on-call.json: Failed reconciles and aborted executions B": "no execution deviates from its plan",
    "on-call.json: Partitions at risk, by class A": "a broker that is cut off from outside stays in every ISR",
    "Rebalance waves": "the policy has no rebalance",
}
IN_RECOVERY = {
    "on-call.json: Restoration A",
    "on-call.json: Blocked brokers, by reason B",
    "Promotions",
    "Restoration waves",
}


def cut(kafka: KafkaCluster, *brokers: int) -> None:
    assert kafka.proxy is not None
    for broker in brokers:
        kafka.proxy.cut(f"broker-{broker}")


def queries() -> dict[str, str]:
    """Every query of the dashboards and of their marks."""
    marks = {mark["name"]: sent(mark["expr"]) for mark in boards()["on-call.json"]["annotations"]["list"]}
    return marks | {f"{p} {target['refId']}": sent(target["expr"]) for p in panels() for target in p.targets}


class Silent:
    """Queries that have had no series yet. A scrape that comes too late leaves a gap, so each is asked again."""

    def __init__(self, watched: WatchedSite) -> None:
        self._watched = watched
        self._left = queries()

    def until_only(self, names: Collection[str], seconds: float) -> None:
        """Wait until each query, but for these, has had a series."""

        def shown() -> bool:
            for name in [name for name, asked in self._left.items() if self._watched.ask(asked)]:
                del self._left[name]
            return self._left.keys() <= set(names)

        self._watched.site.until(shown, seconds, "every query has series", lambda: sorted(self._left))

    @property
    def left(self) -> set[str]:
        """Their names."""
        return set(self._left)


@pytest.mark.slow
def test_on_a_calm_cluster_every_panel_shows_something_or_says_what_nothing_means(watched: WatchedSite) -> None:
    silent = {str(panel): panel for panel in panels() if not panel.empty}

    def shown() -> bool:
        for name, panel in list(silent.items()):
            if any(watched.ask(sent(target["expr"])) for target in panel.targets):
                del silent[name]
        return not silent

    watched.site.until(shown, 60, "every panel shows something", lambda: sorted(silent))


@pytest.mark.slow
def test_a_broker_cut_off_is_reported_until_it_is_healthy_and_every_query_shows_something(
    watched: WatchedSite, kafka: KafkaCluster
) -> None:
    site, silent = watched.site, Silent(watched)
    cut(kafka, 2)
    for alert in OF_A_SICK_BROKER:
        site.tell(f"{alert} fires {watched.until_fires(alert, namespace=site.namespace, policy='main'):.1f} s later")
    watched.until_fires("BellwetherErrorBudgetBurnFast")

    def noted() -> bool:
        found = watched.annotations()
        sick, risk = (found.get(f"Bellwether{name}", {}) for name in ("BrokerSick", "PartitionMovesBlocked"))
        # Two partitions of the site, and those of topics that other tests left with their only replica on broker 2.
        blocked = [one for one in site.status().get("blockedByReason", ()) if one["reason"] in NO_OTHER_LEADER]
        count = sum(one["count"] for one in blocked)
        text = risk.get("summary", "")
        return "broker 2" in sick.get("description", "") and count >= 2 and text.startswith(f"{count} Kafka partitions")

    site.until(noted, 60, "the alerts name the broker and its partitions", watched.annotations)
    cut(kafka, 3)
    site.policy("lost", kafka={"bootstrapServers": [f"127.0.0.1:{site.free_port()}"]})
    silent.until_only(NEVER_SHOWN.keys() | IN_RECOVERY, 120)
    site.delete(name="lost")
    kafka.mend()
    silent.until_only(NEVER_SHOWN, 150)
    assert silent.left == set(NEVER_SHOWN)
    site.until(lambda: site.gone("lost"), 60, "the second policy is gone")
    watched.until_quiet([*OF_A_SICK_BROKER, "BellwetherErrorBudgetBurnFast"])
