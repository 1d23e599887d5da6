"""Probes that measure every few milliseconds count harm on the same scale, so that their tests take no seconds."""

from __future__ import annotations

import pytest

from bellwether.core.detection import harm

SCALE = 20


@pytest.fixture
def quick_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Harm in a twentieth of the time."""
    for name in ("REPORTED_FROM_SECONDS", "RECOVERED_SECONDS", "EPISODE_OVER_SECONDS", "REPORT_SECONDS"):
        monkeypatch.setattr(harm, name, getattr(harm, name) / SCALE)
