"""``bellwether sidecar-webhook`` ends with a message when it cannot serve."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bellwether.cli.main import main

SIDECARS = json.dumps({"orders": {"containers": [{}], "imagePullSecrets": []}})


def said(folder: Path, sidecars: str) -> str:
    """What it says with a certificate that does not exist."""
    files = [f"--tls-cert={folder / 'tls.crt'}", f"--tls-key={folder / 'tls.key'}"]
    found = CliRunner().invoke(main, ["sidecar-webhook", *files, f"--sidecars={sidecars}"])
    assert found.exit_code == 1
    return found.output


def test_a_certificate_that_is_missing_is_named(tmp_path: Path) -> None:
    assert f"--tls-cert {tmp_path / 'tls.crt'}" in said(tmp_path, SIDECARS)


def test_sidecars_that_are_no_json_are_named(tmp_path: Path) -> None:
    assert "--sidecars: not JSON" in said(tmp_path, "{")
