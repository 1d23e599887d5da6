"""The search for secrets in an image rests on a canary that every secret of the build holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from images import machine


def test_every_secret_holds_the_canary_and_is_for_its_owner_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("a certificate\n")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        machine, "output", lambda *command: "" if command[0] == "apt-config" else f"global.cert='{bundle}'\n"
    )
    found = machine.secrets(tmp_path / "s", "a canary")
    assert len(found) == 3
    assert all("a canary" in path.read_text() for path in found.values())
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0
