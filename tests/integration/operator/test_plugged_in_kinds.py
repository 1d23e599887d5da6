"""The worked example of ``examples/signals/``, installed as people would, on real brokers and for a real operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import SIGNAL_SOURCES
from testkit.kubernetes import api_objects
from waiting import limit, ran

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "signals" / "tls-version"
KIND = "TlsVersion"
BROKERS = (1, 2, 3)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The example in a folder of its own, and the variables that add it to Bellwether. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("tls-version")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", folder / "there", EXAMPLE]
    subprocess.run(command, check=True, capture_output=True, timeout=limit(120))
    return {"PYTHONPATH": str(folder / "there")}


def bellwether(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bellwether", "probe", "plugin", *arguments]
    return ran(command, 60, env={**os.environ, **environment})


def plugin(minimum: str) -> dict[str, Any]:
    settings = [{"name": "listener", "value": "SECURE"}, {"name": "minimum", "value": minimum}]
    return {"plugin": {"type": KIND, "periodSeconds": 1, "onFailing": "Suspect", "settings": settings}}


def test_example_is_listed_once_it_is_installed_and_not_before(installed: dict[str, str]) -> None:
    without, with_it = bellwether({}, "--list"), bellwether(installed, "--list")
    assert KIND not in without.stdout
    (line,) = (line for line in with_it.stdout.splitlines() if line.startswith(KIND))
    assert line.split() == [
        KIND,
        "bellwether-tls-version",
        "0.1.0",
        "tls_version:TlsVersion",
        "ready",
    ]
    assert (without.returncode, with_it.returncode) == (0, 0)


def test_one_measurement_reads_the_version_that_each_broker_speaks(bare_site: Site, installed: Any) -> None:
    once = ["--once", "--type", KIND, "--bootstrap", bare_site.kafka.broker(1).internal]
    well = bellwether(installed, *once, "--setting", "listener=SECURE")
    rows = [line.split() for line in well.stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [[str(b), "Passing"] for b in BROKERS], well.stderr
    assert all(float(row[2]) == 1.3 for row in rows)
    assert well.returncode == 0
    plain = bellwether(installed, *once, "--setting", "listener=INTERNAL")
    assert plain.stdout.count("Unknown") == 3
    assert "speaks no TLS" in plain.stdout
    assert plain.returncode == 4


def test_its_signal_is_judged_and_explained_and_changes_with_its_source(bare_site: Site, installed: Any) -> None:
    site = bare_site
    site.policy(mode="Observe", detection={"signalSources": [{"name": "tls"}]})
    site.operator()
    site.until_reported()
    (missing,) = (c for c in site.status()["conditions"] if c["type"] == "SourcesUsable")
    assert "no SignalSource tls exists: create it; the namespace has none" in missing["message"]
    site.api.create(SIGNAL_SOURCES, site.namespace, api_objects.source("tls", site.namespace, **plugin("1.3")))
    prober = site.start("prober-plugin", command(site), installed)
    site.until(lambda: [entry(site, b).get("reading") for b in BROKERS] == ["Passing"] * 3, 60, "all pass", site.logs)
    site.until(lambda: [site.verdict(b)[0] for b in BROKERS] == ["Healthy"] * 3, 30, "all are Healthy")
    assert float(entry(site, 2)["value"]) == 1.3
    before = [site.health(b)["signals"] for b in BROKERS]

    change(site, "1.4")
    site.until(
        lambda: [site.verdict(b) for b in BROKERS] == [("Suspect", "SignalFailing")] * 3,
        40,
        "all are Suspect",
        lambda: [site.verdict(b) for b in BROKERS],
    )
    address = site.kafka.broker(2).secure
    said = site.health(2)["verdict"]["message"]
    assert f"{address} speaks TLS 1.3" in said
    assert [site.health(b)["signals"] for b in BROKERS] != before

    change(site, "1.3")
    site.until(lambda: [site.verdict(b)[0] for b in BROKERS] == ["Healthy"] * 3, 40, "all are Healthy again")
    (ready,) = site.api.get(SIGNAL_SOURCES, site.namespace, "tls")["status"]["conditions"]
    assert ready["status"] == "True"
    assert all(c["type"] != "SourcesUsable" for c in site.status()["conditions"])
    prober.ask_to_stop()
    site.until(lambda: not prober.alive, 30, "the prober has ended")


def change(site: Site, minimum: str) -> None:
    site.api.merge(SIGNAL_SOURCES, site.namespace, "tls", {"spec": plugin(minimum)})


def command(site: Site) -> list[str]:
    what = ["--type", KIND, "--source", "here", "--policy", "main", "-n", site.namespace]
    return [sys.executable, "-m", "bellwether", "probe", "plugin", *what]


def entry(site: Site, broker: int) -> dict[str, Any]:
    return next((dict(s) for s in site.health(broker).get("signals", ()) if s["type"] == KIND), {})
