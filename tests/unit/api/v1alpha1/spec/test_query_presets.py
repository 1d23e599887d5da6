"""Ready-made queries as a policy names them: it says openly what they judge, and gets one query for all names."""

from __future__ import annotations

import re

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.spec.query_presets import BY_NAME, PRESETS, Preset, Scope
from bellwether.core.settings import source_settings
from sourcetree import ROOT
from testkit.kubernetes.api_objects import prometheus, rules_of

each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)


ALERTS = 'alertname=~"DiskFailing|NodeDown",namespace="kafka"'
"""A selector of the preset that selects alerts."""


def rule_of(preset: Preset, **fields: object) -> source_settings.PrometheusRule:
    said = {
        "preset": preset.name,
        "threshold": preset.threshold,
        "comparison": str(preset.comparison),
        "leadersOnly": preset.leaders_only,
        **({"selector": ALERTS} if preset.selects_alerts else {}),
        **fields,
    }
    (rule,) = rules_of(prometheus(**said))
    return rule


@each_preset
def test_preset_reaches_core_as_its_query_and_its_sense(preset: Preset) -> None:
    rule = rule_of(preset, peerRatio=preset.peer_ratio)
    assert rule.query == preset.query(Scope(selector=ALERTS if preset.selects_alerts else ""))
    assert (rule.comparison, rule.leaders_only) == (preset.comparison, preset.leaders_only)
    assert (rule.threshold, rule.peer_ratio) == (float(preset.threshold), preset.peer_ratio)


def test_the_preset_of_remote_time_alone_shows_acks() -> None:
    assert [preset.name for preset in PRESETS if rule_of(preset).shows_acks] == ["ProduceRemoteTimeP50"]


@pytest.mark.parametrize(
    ("selector", "alerts"),
    [
        (ALERTS, ("DiskFailing", "NodeDown")),
        ('cluster="main",alertname="DiskFailing"', ("DiskFailing",)),
        ('cluster="main",alertname=~"Disk-1",alertname!="x"', ("Disk-1",)),
    ],
)
def test_the_alerts_of_a_selector_reach_the_core(selector: str, alerts: tuple[str, ...]) -> None:
    assert rule_of(BY_NAME["FiringAlerts"], selector=selector).alerts == alerts


@each_preset
def test_a_preset_asks_for_every_dialect_at_once(preset: Preset) -> None:
    for dialect, _ in preset.dialects:
        assert preset.query(Scope(), dialect) in preset.query(Scope())


@each_preset
def test_selector_narrows_series_that_name_broker_in_every_dialect(preset: Preset) -> None:
    for dialect, _ in preset.dialects:
        assert 'namespace="kafka"' in preset.query(Scope(selector='namespace="kafka"'), dialect)
    more = f'{ALERTS},a=~"b.*"'
    assert rule_of(preset, selector=more).query.count(more) >= 1


@each_preset
def test_another_label_takes_place_of_those_that_are_looked_for(preset: Preset) -> None:
    query = rule_of(preset, brokerLabel="kafka_id").query
    assert "by (kafka_id, strimzi_io_pod_name, kubernetes_pod_name, pod, namespace, " in query
    assert not re.search(r"\bbroker\b", query)


@each_preset
def test_no_preset_adds_up_two_clusters_brokers_of_one_id(preset: Preset) -> None:
    assert re.match(r"[(]*(max|min|avg) by [(]broker, broker_id, .*instance[)]", preset.query(Scope()))


def test_names_are_distinct_and_sentences_are_sentences() -> None:
    assert len(BY_NAME) == len(PRESETS)
    for preset in PRESETS:
        assert re.fullmatch("[A-Z][A-Za-z0-9]+", preset.name)
        assert preset.sentence.endswith(".")


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidObject, match="is not a preset: use one of ProduceLocalTimeP99, ProduceRem"):
        SignalSource.read(prometheus(preset="Magic"))


def test_the_wrong_sense_is_refused_with_the_right_one() -> None:
    with pytest.raises(InvalidObject, match="comparison: must be Below for RequestHandlerIdle"):
        SignalSource.read(prometheus(preset="RequestHandlerIdle"))


def row(preset: Preset) -> str:
    """A preset's row of the documentation."""
    begin = f'`{preset.comparison} "{preset.threshold}"`'
    begin += f", `peerRatio: {preset.peer_ratio}`" if preset.peer_ratio else ""
    begin += ", `leadersOnly: true`" if preset.leaders_only else ""
    exporters = ", ".join(name for name, _ in preset.dialects)
    return f"| `{preset.name}` | {preset.unit} | {begin} | {exporters} | {preset.sentence} |"


def test_the_documentation_lists_every_preset_and_no_other() -> None:
    text = (ROOT / "docs" / "signals" / "prometheus.md").read_text()
    listed = [line for line in text.splitlines() if re.match(r"\| `[A-Z]\w+` \| (?!when)\w+ \|", line)]
    assert listed == [row(preset) for preset in PRESETS]
