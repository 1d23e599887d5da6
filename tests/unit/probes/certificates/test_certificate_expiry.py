"""A broker by the certificates that its listeners show."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from bellwether.core.settings.detection import CertificateExpiry
from bellwether.probes.certificates.certificate_expiry import BrokerCertificates, measured_by
from bellwether.probes.plugins.plugin_api import Measurement
from bellwether.simulation.memory_world import ManualClock

CLOCK = ManualClock()
ADDRESSES = {"EXTERNAL": "b1:9094", "PARTNERS": "b1:9095"}


def look(days: Mapping[str, float], listeners: tuple[str, ...] = ("EXTERNAL",), minimum_days: int = 7) -> Measurement:
    """One look at a broker whose certificates end in so many days, by address; others speak no TLS."""

    def ends(address: str, _timeout_seconds: float) -> datetime:
        if address not in days:
            raise OSError("wrong version number")
        return CLOCK.now() + timedelta(days=days[address])

    settings = measured_by(CertificateExpiry(minimum_days=minimum_days), listeners)
    return BrokerCertificates(ends, CLOCK).measure(1, ADDRESSES, dict(settings.settings), 5.0)


@pytest.mark.parametrize(
    ("days", "ok"),
    [
        pytest.param(30.0, True, id="far away"),
        pytest.param(7.0, True, id="just enough"),
        pytest.param(6.9, False, id="soon"),
        pytest.param(-1.0, False, id="over"),
    ],
)
def test_a_certificate_valid_for_the_minimum_days_passes(days: float, ok: bool) -> None:
    found = look({"b1:9094": days})
    assert (found.ok, found.value) == (ok, pytest.approx(days))


def test_the_message_names_listener_and_date_alone() -> None:
    found = look({"b1:9094": 2.0})
    date = CLOCK.now() + timedelta(days=2)
    assert found.message == f"the certificate of listener EXTERNAL (b1:9094) expires on {date:%Y-%m-%d at %H:%M} UTC"


def test_of_several_listeners_the_one_that_expires_first_counts() -> None:
    found = look({"b1:9094": 30.0, "b1:9095": 3.0}, ("EXTERNAL", "PARTNERS"))
    assert (found.ok, "listener PARTNERS" in found.message) == (False, True)
    one_without_tls = look({"b1:9095": 30.0}, ("EXTERNAL", "PARTNERS"))
    assert one_without_tls.ok


@pytest.mark.parametrize(
    ("listeners", "said"),
    [
        pytest.param(("EXTERNAL",), "listener EXTERNAL (b1:9094) shows no certificate: wrong version", id="no TLS"),
        pytest.param(("ELSEWHERE",), "broker 1 has not said where its listener ELSEWHERE is", id="no address"),
    ],
)
def test_without_a_certificate_there_is_no_evidence(listeners: tuple[str, ...], said: str) -> None:
    found = look({}, listeners)
    assert (found.ok, said in found.message) == (None, True)
