"""SignalSources as policies use them: what a policy names, what it gets, and why it does not get the rest."""

from __future__ import annotations

import pytest

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings import source_settings
from testkit.kubernetes.api_objects import Body, naming, plugin, prometheus, source
from testkit.messages import assert_wording


def used(policy: Body, *sources: Body) -> LeadershipPolicy:
    return LeadershipPolicy.read(policy).with_sources(sources)


def test_two_policies_get_the_rules_of_one_source() -> None:
    rules = [used(naming("prom"), prometheus(query="up")).policy().detection.prometheus_rules for _ in range(2)]
    assert rules == [(source_settings.PrometheusRule(name="flush", query="up", threshold=200),)] * 2


def test_rules_of_two_sources_keep_their_own_periods() -> None:
    slow = source("slow", prometheus={**prometheus(name="lag", query="lag")["spec"]["prometheus"], "periodSeconds": 60})
    found = used(naming("prom", "slow"), prometheus(query="up"), slow).policy().detection
    assert {rule.name: rule.stale_after_seconds for rule in found.prometheus_rules} == {"flush": 60, "lag": 240}
    assert found.stale_after("Prometheus", "lag") == 240


def test_plugin_reaches_the_core_with_its_settings() -> None:
    (found,) = used(naming("plug"), plugin("Wear", settings=[{"name": "a", "value": "b"}])).policy().detection.plugins
    assert (found.type, found.settings) == ("Wear", (("a", "b"),))


def test_selector_of_the_reference_limits_presets_and_no_query() -> None:
    rules = [
        {"name": "preset", "preset": "NodeIoStalled", "selector": 'namespace="kafka"', "threshold": "1"},
        {"name": "query", "query": "up", "threshold": "1"},
    ]
    both = source("prom", prometheus={"url": "http://p", "rules": rules})
    ref = {"name": "prom", "selector": 'strimzi_io_cluster="main"'}
    preset, query = used(naming(ref), both).policy().detection.prometheus_rules
    assert 'namespace="kafka",strimzi_io_cluster="main"' in preset.query
    assert query.query == "up"


@pytest.mark.parametrize(
    ("refs", "sources", "problem"),
    [
        (
            ("disk",),
            (source("disks", plugin={"type": "Wear"}),),
            "spec.detection.signalSources[0]: no SignalSource disk exists (did you mean disks?): create it; the"
            " namespace has disks",
        ),
        (("disk",), (), "no SignalSource disk exists: create it; the namespace has none"),
        (
            ("prom", "twin"),
            (prometheus(query="up"), source("twin", **prometheus(query="down")["spec"])),
            "spec.detection.signalSources[1]: SignalSource twin has rule flush, as has prom: change one of them",
        ),
        (
            ("plug", "twin"),
            (plugin("Wear"), source("twin", plugin={"type": "Wear"})),
            "SignalSource twin has plug-in type Wear, as has plug: change one of them",
        ),
        (
            ("prom",),
            (prometheus(preset="Magic"),),
            "SignalSource prom: spec.prometheus.rules[0].preset: is not a preset",
        ),
        (
            ({"name": "plug", "selector": 'a="b"'},),
            (plugin("Wear"),),
            "SignalSource plug has no preset for a selector: remove selector",
        ),
    ],
)
def test_unusable_source_is_left_out_with_the_remedy(
    refs: tuple[str | Body, ...], sources: tuple[Body, ...], problem: str
) -> None:
    policy = used(naming(*refs), *sources)
    assert problem in str(policy.sources)
    assert len(policy.sources.problems) == 1
    assert len(policy.sources.used) == len(refs) - 1


def test_rules_of_all_sources_together_are_limited() -> None:
    def many(name: str) -> Body:
        rules = [{"name": f"{name}-{n}", "query": "up", "threshold": "1"} for n in range(20)]
        return source(name, prometheus={"url": "http://p", "rules": rules})

    policy = used(naming("a", "b"), many("a"), many("b"))
    assert [one.source.metadata.name for one in policy.sources.used] == ["a"]
    assert_wording(policy.sources.problems[1])
