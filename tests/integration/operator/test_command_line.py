"""Commands that plan as the operator does, next to a real operator: what they foretell is what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.cli.main import main
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Reorder
from testkit.kafka.kafka_site import PATIENT

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


def run(site: Site, *arguments: str, status: int = 0) -> str:
    """What a command prints whose kubeconfig has the site's namespace; no option names namespace or policy."""
    document = yaml.safe_load(Path(site.server.kubeconfig).read_text())
    for one in document["contexts"]:
        one["context"]["namespace"] = site.namespace
    own = site.directory / "kubeconfig"
    own.write_text(yaml.safe_dump(document))
    found = CliRunner().invoke(main, list(arguments), env={"KUBECONFIG": str(own)})
    assert found.exit_code == status, found.output
    return found.stdout


def document(site: Site, *arguments: str) -> Any:
    return json.loads(run(site, *arguments, "-o", "json"))


def test_the_plan_in_observe_mode_is_what_the_operator_does_when_it_enforces(site: Site) -> None:
    site.change(mode="Observe")
    before = site.orders()
    assert "would be demoted" in run(site, "demote", "2", "--dry-run")
    assert site.orders() == before
    site.demote(2)
    plan = document(site, "plan")
    assert plan["mode"] == "Observe"
    assert [one["broker"] for one in plan["demoted"]] == [2]
    foretold = dict(before)
    for move in plan["moves"]:
        for name in before:
            if (name.topic, name.partition) == (move["topic"], move["partition"]):
                foretold[name] = tuple(move["target"])
    site.change(mode="Enforce")
    site.until_demoted(2, before)
    assert site.orders() == foretold
    moved = next(name for name, order in before.items() if order[0] == 2)
    why = document(site, "why", f"{moved.topic}/{moved.partition}")
    assert why["baseline"] == list(before[moved])
    assert why["why"].startswith("broker 2 is first in its own order, but it is demoted (OverrideDemoted)")
    assert site.namespace in run(site, "status", "-A")


def test_preferred_leaders_are_elected_and_nothing_is_reordered(site: Site) -> None:
    before = site.orders()
    name = next(name for name, order in before.items() if order[0] == 1)
    first, second, *others = before[name]
    mover = KafkaMover(BrokerPool(Connection(tuple(site.kafka.bootstrap.split(","))), PATIENT))
    site.change(mode="Observe")
    mover.reorder([Reorder(name, (second, first, *others))])
    mover.elect([name])
    mover.reorder([Reorder(name, before[name])])
    site.until(lambda: site.partitions()[name].leader == second, 10, "the second leads", site.partitions)
    listed = run(site, "elect", "--topic", name.topic, "--dry-run")
    assert f"{name.topic}/{name.partition}" in listed
    assert site.partitions()[name].leader == second
    run(site, "elect", "--topic", name.topic)
    site.until(lambda: site.partitions()[name].leader == first, 10, "the first leads again", site.partitions)
    assert site.orders() == before
