"""What clients suffer now, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.diagnosis.client_impact import impact
from bellwether.controllers.reporting.status import broker_status
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Mode, Policy
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.values.builders import cluster, decisions, partition, said, snapshot, verdicts

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


def lines(sick: list[int], slow: list[int], demoted: list[int], **spec: object) -> list[str]:
    """Broker 2 leads 60 partitions; what a policy says of brokers 1 to 3."""
    seen = cluster(*(partition(index=i, replicas=(2, 1, 3)) for i in range(60)))
    judged = {
        b: replace(v, slow=Reason.STORAGE_SLOW if b in slow else None) for b, v in verdicts(seen, sick=sick).items()
    }
    found = said(snapshot(seen), ENFORCE, judged, Plan(decisions=decisions(*demoted)))
    healths = [
        BrokerHealth.read(api_objects.health(b.broker) | {"status": broker_status(b, 1, {}, found.now)})
        for b in found.brokers
    ]
    return list(impact(healths, LeadershipPolicy.read(api_objects.policy(**spec))))


def test_a_sick_broker_that_leads_comes_with_the_number_of_its_partitions() -> None:
    assert_wording(lines(sick=[1, 2], slow=[], demoted=[1]))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "quarantine is off (spec.quarantine.mode)"),
        (
            {"quarantine": {"mode": "Enabled"}},
            "only a broker with a slow disk that does not keep up is held (spec.quarantine)",
        ),
    ],
)
def test_a_slow_broker_in_the_isr_comes_with_what_acks_all_clients_see_and_why_it_is_not_held(
    spec: dict[str, object], why: str
) -> None:
    assert_wording(lines(sick=[], slow=[1], demoted=[], **spec))


def test_of_many_brokers_five_are_named_and_the_others_counted() -> None:
    spread = cluster(*(partition(index=i, replicas=(1 + i % 7, 1 + (i + 1) % 7)) for i in range(14)), brokers=7)
    found = said(snapshot(spread), ENFORCE, verdicts(spread, sick=range(1, 7)), Plan(decisions=decisions()))
    healths = [
        BrokerHealth.read(api_objects.health(b.broker) | {"status": broker_status(b, 1, {}, found.now)})
        for b in found.brokers
    ]
    *named, last = impact(healths, LeadershipPolicy.read(api_objects.policy()))
    assert len(named) == 5
    assert_wording(last)


def test_without_affected_clients_nothing_is_printed() -> None:
    assert lines(sick=[1], slow=[], demoted=[1]) == []
