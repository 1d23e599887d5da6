"""Every command of the alert pages and of the runbook is run, and does what its page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testkit.runbooks.acts import ACTS, PARTINGS
from testkit.runbooks.looks import LOOKS, faults
from testkit.runbooks.page_commands import PAGES, commands

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.runbooks.installation import Installation

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.prometheus, pytest.mark.slow]


@pytest.fixture(scope="module")
def installation(empty_kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The chart on an API server of its own, as its roles and admission would bind other tests, too."""
    from realparts.apiserver import ApiServer
    from testkit.runbooks.installation import Installation

    with ApiServer(tmp_path_factory.mktemp("runbooks")) as server:
        made = Installation(server, empty_kafka, tmp_path_factory.mktemp("installation"))
        try:
            made.begin()
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def broken(installation: Installation) -> Installation:
    """One broker demoted, one frozen, one left."""
    installation.break_brokers()
    return installation


@pytest.mark.parametrize("text", ACTS)
def test_a_command_that_acts_has_its_effect(text: str, installation: Installation) -> None:
    ACTS[text](installation, text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_looks_with_shows_what_it_says(page: Path, broken: Installation) -> None:
    looking = [one for one in commands(page) if one.query or one.text in LOOKS]
    assert [fault for one in looking for fault in faults(broken, one, first=one is looking[0])] == []


@pytest.mark.parametrize("text", PARTINGS)
def test_command_for_end_of_policy_has_its_effect(text: str, broken: Installation) -> None:
    PARTINGS[text](broken, text)
