"""The audit trail of a real demotion: on whose request, and what came of it, when operator and policy are gone."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from realparts.processes import whole_lines

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def history(site: Site, *arguments: str) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "bellwether",
        "history",
        "--policy",
        "main",
        "-n",
        site.namespace,
        "-o",
        "json",
        *arguments,
    ]
    process = site.start("history", command)
    site.until(lambda: not process.alive, 30, "the command has ended")
    return list(json.loads(process.log.read_text()))


@pytest.mark.slow
def test_the_trail_names_the_word_and_outlives_operator_and_policy(site: Site) -> None:
    before = site.demote_and_wait(1, "its disk is replaced")
    led = sum(1 for order in before.values() if order[0] == 1)
    # Where Kafka or the machine is slow, another turn goes on with what is left; it names no broker.
    falls = history(site)
    (fall,) = (one for one in falls if one.get("brokers"))
    (change,) = fall["brokers"]
    assert (change["became"], change["word"]) == ("Demoted", "override by field manager kubectl-patch")
    assert "its disk is replaced" in change["message"]
    assert fall["moves"]["leaving"]["1"] >= led
    assert sum(one["outcome"]["elected"] for one in falls) >= led

    site.processes[0].kill()
    site.operator()
    site.lift_and_wait(1, before)
    site.until(lambda: len(history(site)) > len(falls), 60, "the promotion is logged", lambda: history(site))
    rise = history(site)[len(falls)]
    assert rise["epoch"] == fall["epoch"] + 1
    assert [one["became"] for one in rise["brokers"]] == ["Promoted"]
    assert rise["moves"]["restores"] == rise["moves"]["reorders"]

    lines = [json.loads(one) for one in whole_lines(site.processes[0].log) if "bellwether.audit" in one]
    assert [one["event"] for one in lines] == ["audit_entry_started", "audit_entry_completed"] * len(falls)
    site.delete()
    site.until(site.gone, 60, "the policy is gone")
    assert len(history(site)) > len(falls)
    assert history(site, "--broker", "9") == []
