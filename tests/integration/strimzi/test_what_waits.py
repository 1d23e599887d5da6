"""Invariant 10 as people meet it: while Strimzi is paused or moves things, demotion goes on and promotion waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testkit.processes.sites import condition

if TYPE_CHECKING:
    from testkit.kubernetes.strimzi_fixture import StrimziSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

PAUSE = "strimzi.io/pause-reconciliation"


@pytest.mark.slow
def test_a_pause_and_a_running_rebalance_hold_promotion_and_let_a_persons_word_pass(strimzi: StrimziSite) -> None:
    site = strimzi.site
    before = site.orders()
    strimzi.annotate(PAUSE, "true")
    site.demote(1, "a person works on its node")
    site.until_demoted(1, before)
    site.until(lambda: site.status()["strimzi"]["paused"], 30, "the pause is seen", site.status)
    site.lift(1)
    held(strimzi, "ExternalOperation", PAUSE)

    strimzi.rebalance("Rebalancing")
    strimzi.annotate(PAUSE, None)
    held(strimzi, "ExternalOperation", "KafkaRebalance full is running")
    assert site.displaced(1, before)

    override = '{"spec": {"override": {"state": "Promoted", "reason": "it is needed now"}}}'
    site.kubectl("patch", "bh", "main-1", "--type=merge", "-p", override)
    site.until_restored(before)
    site.lift(1)
    site.demote(2)
    site.until_demoted(2, before)
    site.lift(2)
    held(strimzi, "ExternalOperation", "full", broker=2)
    strimzi.rebalance("Ready")
    site.until_restored(before)


def held(strimzi: StrimziSite, reason: str, words: str, broker: int = 1) -> None:
    """Wait until the policy and the broker say why the promotion waits."""
    site = strimzi.site

    def waits() -> bool:
        blocked = condition(site.status(), "DemotionBlocked")
        return blocked.get("reason") == reason and words in blocked["message"]

    site.until(waits, 30, f"held for {reason}: {words}", site.status)
    why = condition(site.health(broker), "Demoted")
    assert why["status"] == "True"
    assert words in why["message"]
