from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings.policy import UNBOUNDED, Capacity
from bellwether.ports.errors import Terminal
from bellwether.recording.replay_settings import (
    NO_LOADS,
    limits_loads,
    policy_of,
    setting,
    settings_section,
    without_effect,
)
from sourcetree import ROOT
from testkit.kubernetes import api_objects

FULL = ROOT / "examples" / "policies" / "full.yaml"


def section(**spec: Any) -> dict[str, Any]:
    return settings_section(LeadershipPolicy.read(api_objects.policy(**spec)))


def test_the_policy_is_read_back_as_it_was():
    policy = LeadershipPolicy.read(
        api_objects.policy(
            mode="Enforce", promotion={"stabilizationSeconds": 7}, detection={"objectives": {"produceMilliseconds": 90}}
        )
    )
    assert policy_of(json.loads(json.dumps(settings_section(policy))), "main", "default").policy() == policy.policy()


class TestALimitByLoad:
    """What partitions carry is not recorded."""

    def limited(self, **capacity: int) -> dict[str, Any]:
        return section(demotion={"capacity": {"maxBytesPerSecond": 1000, **capacity}})

    def test_limit_of_load_is_kept_with_settings(self):
        assert limits_loads(json.loads(json.dumps(self.limited())))
        assert not limits_loads(section())
        assert not limits_loads(section(demotion={"capacity": {"maxLeaders": 9}}))

    def test_the_limit_by_number_still_limits(self):
        kept = self.limited(maxLeaders=9)
        before = json.dumps(kept)
        assert policy_of(kept, "main", "default").policy().demotion.capacity == Capacity(max_leaders=9)
        assert json.dumps(kept) == before

    @pytest.mark.parametrize("text", ["capacity.maxBytesPerSecond=5", "capacity={maxBytesPerSecond: 5}"])
    def test_limit_of_load_has_no_effect_in_replay(self, text: str):
        changed = setting(f"demotion.{text}")
        assert without_effect(changed) == NO_LOADS
        assert policy_of(section(), "main", "default", [changed]).policy().demotion.capacity == UNBOUNDED


def test_neither_addresses_nor_credentials_are_kept():
    body = next(d for d in yaml.safe_load_all(FULL.read_text()) if d["kind"] == "LeadershipPolicy")
    detection = body["spec"].setdefault("detection", {})
    detection["signalSources"] = [{"name": "prom"}, {"name": "plug"}]
    asked = api_objects.at_prometheus(url="https://prom.secret.example.com", bearerTokenSecretName="prom-token")
    plugin = api_objects.plugin("Custom", settings=[{"name": "password", "value": "hunter2"}])
    kept = json.dumps(settings_section(LeadershipPolicy.read(body).with_sources([asked, plugin])))
    servers = body["spec"]["kafka"]["bootstrapServers"]
    statuses = ("kafka", "prom.secret", "prom-token", "hunter2", "SecretRef", *servers)
    assert [w for w in statuses if w in kept] == []
    found = policy_of(json.loads(kept), "main", "default").policy().detection
    assert ([rule.name for rule in found.prometheus_rules], [one.type for one in found.plugins]) == (
        ["flush"],
        ["Custom"],
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("promotion.stabilizationSeconds=10", (("promotion", "stabilizationSeconds"), 10)),
        ("spec.mode=Observe", (("mode",), "Observe")),
        ("demotion.maxBrokers=20%", (("demotion", "maxBrokers"), "20%")),
        (
            "detection.externalReachability.vantages=[a, b]",
            (("detection", "externalReachability", "vantages"), ["a", "b"]),
        ),
        ("suspend=true", (("suspend",), True)),
    ],
)
def test_a_setting_is_what_it_looks_like(text: str, found: object):
    assert setting(text) == found


@pytest.mark.parametrize("text", ["", "mode", "=1", "a..b=1", "x=[1"])
def test_what_is_no_setting_is_refused(text: str):
    with pytest.raises(Terminal, match="--set"):
        setting(text)


def test_a_changed_setting_is_checked_like_a_policy():
    with pytest.raises(InvalidObject, match=r"spec\.promotion\.stabilizationSeconds"):
        policy_of(section(), "main", "default", [setting("promotion.stabilizationSeconds=-1")])
    with pytest.raises(InvalidObject, match=r"spec\.promotion\.wait"):
        policy_of(section(), "main", "default", [setting("promotion.wait=1")])
    with pytest.raises(Terminal, match="mode has no fields"):
        policy_of(section(), "main", "default", [setting("mode.x=1")])


def test_a_change_leaves_the_recorded_settings_alone():
    recorded = section(promotion={"stabilizationSeconds": 7})
    before = json.dumps(recorded)
    changed = policy_of(recorded, "main", "default", [setting("promotion.stabilizationSeconds=9")])
    assert (changed.policy().promotion.stabilization_seconds, json.dumps(recorded)) == (9, before)
