"""Addresses of pages of the documentation, on the repository's site and on one of the installation."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bellwether import documentation
from bellwether.cli.main import main


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("README.md", ""),
        ("alerts/README.md", "alerts/"),
        ("alerts/BellwetherBrokerSick.md", "alerts/BellwetherBrokerSick/"),
        ("reasons.md#CapReached", "reasons/#CapReached"),
    ],
)
def test_a_page_has_its_address_on_the_site(page: str, address: str) -> None:
    assert documentation.page(page) == documentation.HOME + address


@pytest.mark.parametrize("site", ["https://docs.example.com/kafka", "https://docs.example.com/kafka/"])
def test_another_site_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, site: str) -> None:
    monkeypatch.setenv(documentation.VARIABLE, site)
    assert documentation.page("runbook.md") == "https://docs.example.com/kafka/runbook/"


def test_an_option_names_the_site_of_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(documentation.VARIABLE, "")
    asked = CliRunner().invoke(main, ["--docs-url", "https://docs.example.com", "lint", "--help"])
    assert asked.exit_code == 0
    assert documentation.page("runbook.md") == "https://docs.example.com/runbook/"


def test_a_site_that_is_no_address_is_a_usage_error() -> None:
    asked = CliRunner().invoke(main, ["--docs-url", "wiki", "lint"])
    assert asked.exit_code == 2
    assert "'wiki' is not an address" in asked.output
