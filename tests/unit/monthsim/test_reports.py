import json
from pathlib import Path

import pytest

from monthsim import campaign, plots, replays, reports
from monthsim.models import MODELS
from monthsim.months import ALONE, OURS, RULES
from monthsim.scoring import Score

pytestmark = pytest.mark.slow

Found = dict[str, dict[str, Score]]


@pytest.fixture(scope="module")
def found() -> Found:
    jobs = campaign.main_jobs(12, 7) + campaign.variant_jobs(3, 7) + campaign.sensitivity_jobs(3, 7)[:4]
    jobs += campaign.model_jobs(3, 7)
    return campaign.run([j for j in jobs if j.brokers == 3], 1, lambda _: None)


@pytest.fixture(scope="module")
def report(found: Found) -> reports.Figures:
    variants = {name: found[name] for name in campaign.variants() if name in found}
    models = {name: found[campaign.MODEL + name] for name in MODELS}
    return reports.report(found[""], found, variants, models, {"seed": 7})


def test_every_size_of_cluster_has_its_share_of_the_broker_months() -> None:
    by_size: dict[int, int] = {}
    for brokers, _ in campaign.months(1200, 1):
        by_size[brokers] = by_size.get(brokers, 0) + brokers
    assert set(by_size.values()) == {300}


def test_every_rule_set_is_in_the_report_with_bound_misses_and_delays(report: reports.Figures) -> None:
    assert set(report["rules"]) == set(RULES)
    ours = report["rules"][OURS]
    assert ours["false_demotions"]["upper_bound_95"] > ours["false_demotions"]["per_1000_broker_months"]
    assert set(ours["external_faults"]) == {
        "injected",
        "missed",
        "missed_while_held",
        "median_seconds",
        "p95_seconds",
    }
    assert report["sensitivity"][0]["factor"] == 0.5
    assert all(a["source"] for a in report["assumptions"].values())


def test_the_same_seed_gives_the_same_figures(found: Found) -> None:
    again = campaign.run([j for j in campaign.main_jobs(12, 7) if j.brokers == 3], 1, lambda _: None)
    for name in RULES:
        assert reports.score_figures(again[""][name]) == reports.score_figures(found[""][name])


def test_the_report_is_written_as_json_and_the_picture_twice_the_same(report: reports.Figures, tmp_path: Path) -> None:
    reports.save(report, tmp_path / "reports" / "detection.json")
    assert json.loads((tmp_path / "reports" / "detection.json").read_text())["made"] == {"seed": 7}
    for name in ("one.svg", "two.svg"):
        plots.draw(report, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert OURS in (tmp_path / "one.svg").read_text()


def test_a_rate_is_per_1000_broker_months_with_its_bound() -> None:
    assert reports.rate(0, 3000) == {"count": 0, "per_1000_broker_months": 0.0, "upper_bound_95": 0.999}


def test_a_missed_goal_is_said_to_be_missed() -> None:
    good = dict.fromkeys((OURS, ALONE), reports.score_figures(Score(3000)))
    alone = {"standard": {OURS: 9.0, ALONE: 1.4, "k-of-n": 1.6}}
    met = reports.goal(good, {"standard": {OURS: 1.4, "k-of-n": 1.6}, "bursts": {OURS: 1.9, "k-of-n": None}}, alone)
    assert met["upper_bound_met"]
    for one in (*met["regret"].values(), *met["regret_without_agent"].values()):
        assert (one["met"], one["less_than_every_peer"]) == (True, True)
    spurious = good | {ALONE: reports.score_figures(Score(2000))}
    missed = reports.goal(spurious, {"standard": {OURS: 1.7, "k-of-n": 1.5}}, alone)
    assert not missed["upper_bound_met"]
    assert not missed["regret"]["standard"]["met"]
    assert not missed["regret"]["standard"]["less_than_every_peer"]


def test_regret_of_every_model_and_rule_set_is_in_the_report(report: reports.Figures) -> None:
    for key, rules in (("regret", set(RULES)), ("regret_without_agent", set(RULES) - {OURS})):
        assert {model: set(by_rule) for model, by_rule in report[key].items()} == dict.fromkeys(MODELS, rules)
    assert "spurious_upper_per_1000" in report


def test_a_quantile_is_one_of_the_values() -> None:
    assert reports.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert reports.quantile([float(n) for n in range(1, 101)], 0.95) == 95.0


def test_a_month_is_told_again_by_its_seed() -> None:
    lines = list(replays.tell((7, 3, 0)))
    assert lines[0].startswith("3 brokers, ")
    assert "demotions" in lines[1]
