from pathlib import Path

import pytest

from monthsim import campaign, pages, reports
from monthsim.models import MODELS
from sourcetree import ROOT


@pytest.fixture(scope="module")
def found() -> reports.Figures:
    jobs = [j for j in (*campaign.main_jobs(12, 7), *campaign.model_jobs(12, 7)) if j.brokers == 3]
    lived = campaign.run(jobs, 1, lambda _: None)
    models = {name: lived[campaign.MODEL + name] for name in MODELS}
    made = {
        "seed": 7,
        "broker_months": 3,
        "broker_months_of_a_model": 3,
        "broker_months_of_a_sensitivity_run": 0,
        "broker_months_of_a_tradeoff_run": 0,
    }
    return reports.report(lived[""], {}, {}, models, made)


def test_the_figures_stand_between_the_marks_and_nothing_else_changes(found: reports.Figures, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{pages.BEGIN}\nold figures\n{pages.END}\nafter\n")
    pages.write(found, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old figures" not in text
    assert "Seed 7, 3 broker-months" in text
    pages.write(found, page)
    assert page.read_text() == text


def test_every_rule_set_and_every_assumption_has_a_row(found: reports.Figures) -> None:
    text = pages.figures(found)
    for name in (*found["rules"], *(f"`{n}`" for n in found["assumptions"])):
        assert f"| {name} |" in text


def test_a_page_without_marks_is_left_alone(found: reports.Figures, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks\n")
    with pytest.raises(pages.NoMarks, match="put them where the figures belong"):
        pages.write(found, page)
    assert page.read_text() == "no marks\n"


def test_the_published_page_has_its_marks_and_figures() -> None:
    text = (ROOT / "docs" / "internals" / "detection-benchmark.md").read_text(encoding="utf-8")
    assert "| bellwether |" in text.split(pages.BEGIN)[1].split(pages.END)[0]
