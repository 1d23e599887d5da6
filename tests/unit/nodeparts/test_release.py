"""Who acts is read from the metrics, and the values install what the tests look at."""

from __future__ import annotations

import pytest

from nodeparts import release

HELD = 'bellwether_operator_leading{namespace="bellwether",policy="main"}'


@pytest.mark.parametrize(("value", "acts"), [("1.0", True), ("0.0", False)])
def test_a_pod_acts_that_says_that_it_holds_the_lease(value: str, acts: bool) -> None:
    said = f"# HELP bellwether_operator_leading 1 while 1.0\n{HELD} {value}\nother 1.0\n"
    assert bool(release.ACTING.search(said)) is acts


def test_a_pod_that_says_nothing_of_the_lease_does_not_act() -> None:
    assert not release.ACTING.search("other{} 1.0\n")


def test_every_prober_and_sidecar_follows_the_policy_that_is_made() -> None:
    values = release.values(["kafka:9092"], "kafka", "brokers")
    (policy,) = values["policies"]
    followed = {one["policy"] for one in [*values["probers"], *values["sidecars"]["accounts"], values["sampler"]]}
    assert followed == {policy["name"]} == {release.POLICY}
    assert [one["vantage"] for one in values["probers"]] == policy["spec"]["detection"]["externalReachability"][
        "vantages"
    ]


def test_the_image_is_the_one_that_was_loaded() -> None:
    image = release.values([], "kafka", "brokers")["image"]
    assert f"docker.io/library/{image['repository']}:{image['tag']}" == release.IMAGE
    assert image["pullPolicy"] == "Never"
