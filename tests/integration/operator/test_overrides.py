"""A person's request, end to end: an override demotes and holds, its end gives every leader back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.core.signals import Reading
from testkit.processes.sites import condition, demoted

if TYPE_CHECKING:
    from bellwether.core.model.cluster import TopicPartition
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

FAILING = Reading.FAILING


def test_override_demotes_and_holds_and_its_end_restores_every_baseline(shared_site: Site) -> None:
    site = shared_site
    before = site.demote_and_wait(1, "its disk is being exchanged")
    # Where broker 1 was last already, nothing was written and nothing need be kept.
    assert site.baselines(site.record()) == {name: order for name, order in before.items() if order[-1] != 1}
    why = condition(site.health(1), "Demoted")
    assert (why["reason"], why["message"]) == ("OverrideDemoted", "its disk is being exchanged")
    generation = site.api.get(BROKER_HEALTHS, site.namespace, "main-1")["metadata"]["generation"]
    assert (site.health(1)["observedGeneration"], why["observedGeneration"]) == (generation, generation)
    messages = ("get", "events", "-o", "jsonpath={.items[*].message}")
    # Events are posted once the status is written.
    site.until(lambda: "its disk is being exchanged" in site.kubectl(*messages), 30, "an event says so")

    site.lift_and_wait(1, before)
    site.until(lambda: not demoted(site.health(1)), 30, "the promotion is reported")


def said(site: Site, *arguments: str) -> str:
    """What a command prints, which ends well."""
    return site.run(*arguments, "--policy", "main").stdout


@pytest.mark.slow
def test_command_returns_when_its_effect_is_there_and_tells_it(site: Site) -> None:
    before, leaders = site.orders(), site.led_by(1)
    assert "broker 1 is demoted (OverrideDemoted)" in said(site, "demote", "1", "--reason", "disk swap")
    assert site.health(1)["leaders"] == 0
    # Whom we ask may hear of it a moment later than whom the operator asked.
    site.until(lambda: site.led_by(1) == 0, 10, "it leads nothing", site.partitions)
    assert "partitions; the override prevents a demotion by its signals" in said(site, "promote", "1")
    back(site, before, leaders)
    assert "before); its signals decide again" in said(site, "release", "1")
    assert "broker 1 has no override; nothing was changed" in said(site, "release", "1")
    said(site, "demote", "1")
    assert "before); its signals decide again" in said(site, "release", "1")
    back(site, before, leaders)


def back(site: Site, before: Mapping[TopicPartition, tuple[int, ...]], leaders: int) -> None:
    """The operator has seen the leaders of broker 1 come back, and whom we ask shows all of them."""
    assert site.health(1)["leaders"] > 0
    site.until(lambda: (site.orders(), site.led_by(1)) == (before, leaders), 10, "all are back", site.partitions)


@pytest.mark.slow
def test_topic_made_while_broker_is_demoted_gets_its_leaders_elsewhere(site: Site) -> None:
    site.demote_and_wait(2)
    late = f"{site.topic}-late"
    site.topics({late: 6}, assignments={late: [[2, 1, 3]] * 6})
    site.until(lambda: site.led_by(2) == 0, 30, "the new topic's leaders have left", site.partitions)
    site.lift(2)
    site.until(
        lambda: all(p.replicas == (2, 1, 3) and p.leader == 2 for p in site.partitions(late).values()),
        30,
        "they are back as they were created",
        site.partitions,
    )


def test_kubectl_answers_who_why_since_when_and_how_many_leaders(shared_site: Site) -> None:
    site = shared_site
    voices = [site.voice("zone-a"), site.voice("zone-b")]
    for voice in voices:
        voice.calls_well(1, 2, 3)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 30, "all are Healthy")
    site.change(detection={"externalReachability": {"vantages": ["zone-a", "zone-b"]}})
    before = site.orders()
    for voice in voices:
        voice.says(3, FAILING)
    site.until_demoted(3, before)
    time.sleep(1)  # so that "since" is a number
    lines = site.kubectl("get", "lp,bh").splitlines()
    policy = next(line for line in lines if line.startswith("leadershippolicy.")).split()
    assert policy[1:3] == ["Enforce", "True"]
    (sick,) = [line.split() for line in lines if line.startswith("brokerhealth.bellwether.dev/main-3")]
    assert sick[1:4] == ["3", "Sick", "ExternallyUnreachable"]
    assert sick[4].endswith("s")
    assert sick[5:] == ["0", "True", "ExternallyUnreachable"]
    (well,) = [line.split() for line in lines if line.startswith("brokerhealth.bellwether.dev/main-1")]
    assert well[2:4] == ["Healthy", "SignalsPassing"]
    assert int(well[5]) > 0
    wide = site.kubectl("get", "bh", "main-3", "-o", "wide")
    assert "unreachable from zone-a, zone-b (2 of 2 vantages)" in wide


@pytest.mark.slow
def test_an_override_that_promotes_beats_the_signals(site: Site) -> None:
    site.change(detection={"externalReachability": {"vantages": ["zone-a"]}})
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    before = site.orders()
    voice.says(1, FAILING)
    site.until_demoted(1, before)
    override = '{"spec": {"override": {"state": "Promoted", "reason": "the probe is wrong"}}}'
    site.kubectl("patch", "bh", "main-1", "--type=merge", "-p", override)
    site.until_restored(before)
    assert site.verdict(1) == ("Sick", "ExternallyUnreachable")
