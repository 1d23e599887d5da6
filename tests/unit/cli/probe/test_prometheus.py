"""The verb's own words: what it lists, what it asks for, and what it says when it cannot ask."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import POLICIES, SIGNAL_SOURCES
from bellwether.api.v1alpha1.spec.query_presets import PRESETS
from bellwether.cli.probe.prometheus import prometheus
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    api = MemoryApi()
    api.serve_commands(monkeypatch)
    return api


def test_presets_are_listed_with_their_promql_without_a_cluster() -> None:
    said = CliRunner().invoke(prometheus, ["--presets"])
    assert said.exit_code == 0
    for preset in PRESETS:
        assert f"{preset.name} ({preset.unit})\n  " in said.output
        for dialect, _ in preset.dialects:
            assert f"\n  {dialect}: " in said.output


def test_one_measurement_needs_a_policy() -> None:
    said = CliRunner().invoke(prometheus, ["--once"])
    assert said.exit_code == 2
    assert "Missing option '--policy'" in said.output


@pytest.mark.parametrize("sources", [[], ["prom"]], ids=["no rules", "missing source"])
def test_a_policy_without_rules_says_what_to_add_or_what_exists(api: MemoryApi, sources: list[str]) -> None:
    api.put(POLICIES, api_objects.naming(*sources))
    api.put(SIGNAL_SOURCES, api_objects.source("proms", plugin={"type": "Wear"}))
    said = CliRunner().invoke(prometheus, ["--policy", "main", "--once"])
    assert said.exit_code == 1
    assert_wording(said.output)


def test_a_missing_secret_is_named_for_every_rule(api: MemoryApi) -> None:
    api.put(SIGNAL_SOURCES, api_objects.at_prometheus(url="https://prometheus:9090", bearerTokenSecretName="prom"))
    api.put(POLICIES, api_objects.naming("prom"))
    said = CliRunner().invoke(prometheus, ["--policy", "main", "--once"])
    assert said.exit_code == 4
    assert_wording(said.output)
