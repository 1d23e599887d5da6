"""Certificates of real brokers' TLS listeners, from the prober to the verdict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

BROKERS = (1, 2, 3)


def detection(minimum_days: int) -> dict[str, Any]:
    return {
        "externalReachability": {"listeners": ["SECURE"]},
        "certificateExpiry": {"enabled": True, "minimumDays": minimum_days},
    }


def test_one_measurement_reads_the_certificate_of_each_broker(bare_site: Site) -> None:
    once = ["probe", "certificates", "--once", "--bootstrap", bare_site.kafka.broker(1).internal, "--listener"]
    found = CliRunner().invoke(main, [*once, "SECURE"])
    rows = [line.split() for line in found.stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [[str(b), "Passing"] for b in BROKERS], found.output
    assert all(29 < float(row[2]) <= 30 for row in rows)
    assert found.exit_code == 0
    plain = CliRunner().invoke(main, [*once, "INTERNAL"])
    assert (plain.stdout.count("Unknown"), plain.exit_code) == (3, 4)
    assert "listener INTERNAL" in plain.stdout


def test_a_broker_whose_certificate_expires_soon_is_suspect(
    bare_site: Site,
) -> None:
    site = bare_site
    site.policy(mode="Observe", detection=detection(45))
    site.operator()
    site.until_reported()
    what = ["--source", "here", "--policy", "main", "-n", site.namespace]
    prober = site.start("prober-certificates", [sys.executable, "-m", "bellwether", "probe", "certificates", *what])
    site.until(
        lambda: [site.verdict(b) for b in BROKERS] == [("Suspect", "CertificateExpiring")] * 3,
        90,
        "all are Suspect",
        site.logs,
    )
    said = site.health(2)["verdict"]["message"]
    assert (
        f"CertificateExpiry fails: the certificate of listener SECURE ({site.kafka.broker(2).secure}) expires on"
        in said
    )
    entry = next(s for s in site.health(2)["signals"] if s["type"] == "CertificateExpiry")
    assert (entry["source"], 29 < float(entry["value"]) <= 30) == ("here", True)
    site.change(detection=detection(7))
    site.until(lambda: [site.verdict(b)[0] for b in BROKERS] == ["Healthy"] * 3, 100, "all are Healthy", site.logs)
    prober.ask_to_stop()
    site.until(lambda: not prober.alive, 30, "the prober has ended")
