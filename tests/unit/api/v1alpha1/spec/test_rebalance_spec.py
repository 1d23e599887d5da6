"""What a LeaderRebalance says, from spec to the values of the core, with the core's defaults."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.core.settings import objective as core_objective
from bellwether.core.settings import rebalance as core_rebalance
from bellwether.core.settings.schedule import Schedule
from sourcetree import ROOT
from testkit.kubernetes import api_objects


def given(body: api_objects.Body) -> Any:
    return LeaderRebalance.read(body).spec.to_core()


def test_smallest_rebalance_is_default_of_core():
    assert given(api_objects.rebalance()) == core_rebalance.Rebalance()
    assert core_rebalance.Rebalance().approval is core_rebalance.Approval.MANUAL
    assert core_rebalance.Rebalance().schedule is None


def test_a_full_rebalance_reaches_the_core():
    body = yaml.safe_load((ROOT / "examples" / "policies" / "leader-rebalance.yaml").read_text())
    assert given(body) == core_rebalance.Rebalance(
        schedule=Schedule("0 4 * * *"),
        approval=core_rebalance.Approval.MANUAL,
        objective=core_objective.Objective(
            preferred_racks=("eu-west-1a", "eu-west-1b"), max_moves=5000, request_bytes=5000
        ),
        capacities={3: 200},
        request_capacities={3: 150},
        excluded_topics=("payments-*",),
    )


def test_traffic_waves_and_validity_reach_the_core():
    found = given(
        api_objects.rebalance(
            approval="Automatic",
            objective={"statistic": "Peak", "traffic": "Produced"},
            minimumImprovementPercent=0,
            validSeconds=3600,
            waves={"partitions": 7, "pauseSeconds": 0},
        )
    )
    assert found == core_rebalance.Rebalance(
        approval=core_rebalance.Approval.AUTOMATIC,
        objective=core_objective.Objective(statistic=core_objective.Statistic.PEAK, consumption=False),
        minimum_improvement_percent=0,
        valid_seconds=3600,
        waves=core_rebalance.RebalanceWaves(partitions=7, pause_seconds=0),
    )


def test_five_fields_that_cron_cannot_read_are_refused_by_name():
    with pytest.raises(InvalidObject, match=r"spec\.schedule: '0 25 \* \* \*' is not a schedule \(Bad hour\)"):
        given(api_objects.rebalance(schedule="0 25 * * *"))


@pytest.mark.parametrize(("field", "value"), [("history", {"uri": "gs://x/y"}), ("runner", {"image": "any"})])
def test_store_and_job_of_the_administrator_are_refused(field: str, value: dict[str, Any]):
    with pytest.raises(InvalidObject, match=rf"spec\.{field}: no such field"):
        LeaderRebalance.read(api_objects.rebalance(**{field: value}))


@pytest.mark.parametrize("name", ["../secrets", "s3://bucket", "a b", "", "A", "x" * 64])
@pytest.mark.parametrize("field", ["store", "profile"])
def test_a_store_and_a_profile_are_names(field: str, name: str):
    with pytest.raises(InvalidObject, match=rf"spec\.{field}: "):
        given(api_objects.rebalance(**{field: name}))


def test_store_and_profile_are_called_default():
    spec = LeaderRebalance.read(api_objects.rebalance()).spec
    assert (spec.store, spec.profile, spec.history_days) == ("default", "default", 14)


def test_the_example_is_valid_and_made_every_night():
    _, body = yaml.safe_load_all((ROOT / "examples" / "policies" / "rebalance.yaml").read_text())
    assert given(body) == core_rebalance.Rebalance(schedule=Schedule("0 4 * * *"))
