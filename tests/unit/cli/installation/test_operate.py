from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-duration", "20", "--lease-renew", "8"], "three times --lease-renew"),
        (["--lease-duration", "5", "--lease-renew", "1"], "more than 4 s"),
        (["--stuck-after", "21"], "must exceed 21 s, the longest that a read of 24 MiB (--metadata-limit) takes"),
        (["--metadata-limit", "192", "--stuck-after", "100"], "must exceed 105 s"),
    ],
)
def test_times_too_short_to_work_with_are_refused(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["operator", *arguments])
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())


def test_an_invalid_configuration_ends_the_start_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "load.yaml"
    path.write_text("stores: {default: {uri: /x}}\nprofiles: {default: {namespaces: ['*'], img: x}}")
    found = CliRunner().invoke(main, ["operator", "--load-config", str(path), "--metrics-port", "0"])
    assert found.exit_code == 1
    said = " ".join(found.output.split())
    assert (
        f"--load-config {path}: stores.default.namespaces: is required: set it; profiles.default.img: no such" in said
    )
