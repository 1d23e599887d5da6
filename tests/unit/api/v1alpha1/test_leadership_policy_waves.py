"""Waves and periodic elections as people ask for them: the examples' files, and what is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings.policy import PromotionWaves
from testkit.kubernetes import api_objects

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


def test_no_periodic_election_is_0_and_a_very_frequent_one_is_refused():
    assert LeadershipPolicy.read(api_objects.policy()).policy().election.interval_seconds == 0
    with pytest.raises(InvalidObject, match=r"spec\.election\.intervalSeconds: must be 0 \(disabled\) or at least 5"):
        LeadershipPolicy.read(api_objects.policy(election={"intervalSeconds": 4}))
