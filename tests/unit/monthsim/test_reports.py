import pytest

from monthsim import campaign, reports
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


def test_regret_of_every_model_and_rule_set_is_in_report(report: reports.Figures) -> None:
    for key, rules in (("regret", set(RULES)), ("regret_without_agent", set(RULES) - {OURS})):
        assert {model: set(by_rule) for model, by_rule in report[key].items()} == dict.fromkeys(MODELS, rules)
    assert "spurious_upper_per_1000" in report


def test_a_quantile_is_one_of_the_values() -> None:
    assert reports.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert reports.quantile([float(n) for n in range(1, 101)], 0.95) == 95.0
