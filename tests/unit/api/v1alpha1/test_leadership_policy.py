"""A policy's defaults are the core's, and it turns into the core's value."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from pydantic.alias_generators import to_camel

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS
from bellwether.core.settings import detection
from bellwether.core.settings import policy as core_policy
from bellwether.core.settings.harm import Objectives
from bellwether.core.settings.policy import PromotionWaves
from bellwether.core.settings.setting import INTERNAL
from testkit.kubernetes import api_objects

PLACES = {
    "reachability": ("externalReachability",),
    "storage": ("storageLatency",),
}
"""Where a field of the core's policy is in spec, where that is not its own name."""
CHOSEN = {"name", "namespace", "mode", "prometheus_rules", "plugins", "rebalance", "placement", "capacity", "scope"}
"""Fields without a default in spec: those that a person has to choose, and what is absent unless it is wanted."""
EITHER = {"listeners"}
"""Fields without a default in spec, as their former name may be set instead."""


def leaves(value: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    if not is_dataclass(value):
        return [(path, value)]
    found, hints = [], get_type_hints(type(value), include_extras=True)
    for field in fields(value):
        if field.name not in CHOSEN | EITHER and INTERNAL not in get_args(hints[field.name]):
            place = PLACES.get(field.name, (to_camel(field.name),))
            found += leaves(getattr(value, field.name), (*path, *place))
    return found


DEFAULTS = dict(leaves(core_policy.Policy(name="main"), ()))


def test_a_default_in_the_crd_is_the_cores():
    spec, found = KINDS[0].schema()["properties"]["spec"], {}
    for path in DEFAULTS:
        schema = spec
        for step in path:
            schema = schema["properties"][step]
        default = schema.get("default", ())
        found[path] = tuple(default) if isinstance(default, list) else default
    assert found == DEFAULTS


def test_the_smallest_policy_is_the_cores_default():
    assert LeadershipPolicy.read(api_objects.policy()).policy() == core_policy.Policy(name="main")


def test_a_full_policy_reaches_the_core():
    body = api_objects.policy(
        mode="Enforce",
        suspend=True,
        deletionPolicy="Abandon",
        deletionTimeoutSeconds=5,
        detection={
            "externalReachability": {"vantages": ["a", "b"], "listeners": ["OUT"], "bootstrapServers": ["lb:9094"]},
            "storageLatency": {"enabled": False},
            "objectives": {"produceMilliseconds": 80},
            "tolerance": 3,
        },
        demotion={"maxBrokers": 2},
        promotion={
            "mode": "Manual",
            "stabilizationSeconds": 0,
            "waves": {"steps": [25, 100], "pauseSeconds": 5, "skipUpToLeaders": 0, "minDowntimeSeconds": 300},
        },
        election={"batchSize": 7, "intervalSeconds": 600},
    )
    assert LeadershipPolicy.read(body).policy() == core_policy.Policy(
        name="main",
        mode=core_policy.Mode.ENFORCE,
        suspend=True,
        deletion_policy=core_policy.DeletionPolicy.ABANDON,
        deletion_timeout_seconds=5,
        detection=detection.Detection(
            external_reachability=detection.Reachability(
                vantages=("a", "b"), listeners=("OUT",), bootstrap_servers=("lb:9094",)
            ),
            storage_latency=detection.StorageLatency(enabled=False),
            objectives=Objectives(produce_milliseconds=80),
            tolerance=3,
        ),
        demotion=core_policy.Demotion(max_brokers=2),
        promotion=core_policy.Promotion(
            mode=core_policy.PromotionMode.MANUAL,
            stabilization_seconds=0,
            waves=core_policy.PromotionWaves(
                steps=(25, 100), pause_seconds=5, skip_up_to_leaders=0, min_downtime_seconds=300
            ),
        ),
        election=core_policy.Election(batch_size=7, interval_seconds=600),
    )


@pytest.mark.parametrize(("cap", "brokers", "allowed"), [(1, 3, 1), (2, 9, 2), ("1%", 3, 1), ("49%", 10, 4)])
def test_cap_is_a_number_of_brokers(cap: int | str, brokers: int, allowed: int):
    policy = LeadershipPolicy.read(api_objects.policy(demotion={"maxBrokers": cap})).policy()
    assert policy.demotion.cap(brokers) == allowed


@pytest.mark.parametrize("server", ["kafka:1", "10.0.0.1:65535", "[2001:db8::1]:9092", "a.b-c.example:9092", "k_1:80"])
def test_a_usable_bootstrap_server_is_accepted(server: str):
    LeadershipPolicy.read(api_objects.policy(kafka={"bootstrapServers": [server]}))


def test_sasl_without_tls_is_accepted_when_a_person_says_so():
    sasl = {**api_objects.SASL, "allowPlaintext": True}
    assert LeadershipPolicy.read(api_objects.policy(kafka=api_objects.kafka(sasl=sasl))).spec.kafka.tls is None


EXAMPLES = Path(__file__).parents[4] / "examples" / "placement"


def waves(**asked: Any) -> PromotionWaves:
    return LeadershipPolicy.read(api_objects.policy(promotion={"waves": asked})).policy().promotion.waves


def test_the_example_of_waves_is_a_policy():
    found = LeadershipPolicy.read(yaml.safe_load((EXAMPLES / "waves" / "policy.yaml").read_text())).policy()
    assert found.promotion.waves == PromotionWaves(pause_seconds=120, min_downtime_seconds=300)


def test_the_example_of_a_periodic_election_is_a_policy():
    body = yaml.safe_load((EXAMPLES / "periodic-election" / "policy.yaml").read_text())
    assert LeadershipPolicy.read(body).policy().election.interval_seconds == 600


@pytest.mark.parametrize("steps", [[100], [1, 100], [10, 50, 100], list(range(5, 101, 5))])
def test_steps_that_rise_to_100_are_taken(steps: list[int]):
    assert waves(steps=steps).steps == tuple(steps)


@pytest.mark.parametrize("steps", [[50, 10, 100], [10, 10, 100], [10, 50], [100, 100], [100, 50]])
def test_steps_that_do_not_are_refused_with_an_example(steps: list[int]):
    with pytest.raises(
        InvalidObject, match=r"spec\.promotion\.waves\.steps: must be in ascending order .*\[10, 50, 100\]"
    ):
        waves(steps=steps)


@pytest.mark.parametrize("steps", [[], [0, 100], [101], ["10", 100], [10.5, 100], list(range(80, 101))])
def test_steps_that_are_no_percentages_or_too_many_are_refused(steps: list[Any]):
    with pytest.raises(InvalidObject, match=r"spec\.promotion\.waves\.steps"):
        waves(steps=steps)


def test_election_interval_is_0_or_at_least_5():
    assert LeadershipPolicy.read(api_objects.policy()).policy().election.interval_seconds == 0
    with pytest.raises(InvalidObject, match=r"spec\.election\.intervalSeconds: must be 0 \(disabled\) or at least 5"):
        LeadershipPolicy.read(api_objects.policy(election={"intervalSeconds": 4}))
