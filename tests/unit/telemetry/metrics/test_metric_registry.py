"""What all the series of a process share, and gauges that are set as a whole."""

from __future__ import annotations

from prometheus_client import Counter, generate_latest

from bellwether import __version__
from bellwether.telemetry.metrics.metric_registry import JointRegistry, LabelledRegistry, PolicyGauge

SHARED = {"namespace": "kafka", "policy": "main", "source": "zone-a"}


def test_every_series_carries_the_shared_labels_and_its_own() -> None:
    registry = LabelledRegistry("prober", SHARED)
    Counter("bellwether_probe_requests", "Asks.", ["broker"], registry=registry).labels("1").inc()
    assert registry.get_sample_value("bellwether_probe_requests_total", {**SHARED, "broker": "1"}) == 1
    text = generate_latest(registry).decode()
    assert 'bellwether_probe_requests_total{broker="1",namespace="kafka",policy="main",source="zone-a"} 1.0' in text


def test_a_label_without_a_value_is_left_out() -> None:
    registry = LabelledRegistry("sampler", {"namespace": "kafka", "policy": ""})
    assert all(
        set(sample.labels) == {"namespace", "component", "version", "python"}
        for metric in registry.collect()
        for sample in metric.samples
    )


def test_build_information_has_component_and_version() -> None:
    text = generate_latest(LabelledRegistry("operator")).decode()
    assert 'bellwether_build_info{component="operator",python="3.' in text
    assert f'version="{__version__}"}} 1.0' in text


def test_when_a_counter_was_made_is_no_series() -> None:
    registry = LabelledRegistry("operator")
    Counter("bellwether_reconcile_errors", "Errors.", registry=registry).inc()
    assert "_created" not in generate_latest(registry).decode()


def test_several_sources_of_one_policy_make_one_page() -> None:
    page = JointRegistry("prober")
    for source in ("disk-0", "disk-1"):
        one = LabelledRegistry("prober", {**SHARED, "source": source})
        one.counter("bellwether_probe_disk_writes", "Writes.", "broker").labels("1").inc()
        page.add(one)
    text = generate_latest(page).decode()
    for source in ("disk-0", "disk-1"):
        labels = f'broker="1",namespace="kafka",policy="main",source="{source}"'
        assert f"bellwether_probe_disk_writes_total{{{labels}}} 1.0" in text
    assert page.get_sample_value("bellwether_policies_served") == 1


def values(registry: LabelledRegistry) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["policy"], sample.labels["broker"]): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "bellwether_leaders"
    }


def test_a_gauge_set_as_a_whole_drops_missing_series() -> None:
    registry = LabelledRegistry("operator")
    gauge = PolicyGauge("bellwether_leaders", "Leaders.", ["broker"], registry)
    gauge.set_series("kafka", "main", {("1",): 5, ("2",): 3})
    gauge.set_series("kafka", "other", {("1",): 9})
    gauge.set_series("kafka", "main", {("2",): 4})
    assert values(registry) == {("main", "2"): 4, ("other", "1"): 9}
    gauge.forget("kafka", "main")
    gauge.forget("kafka", "main")
    assert values(registry) == {("other", "1"): 9}
