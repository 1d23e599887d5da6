from __future__ import annotations

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-duration", "20", "--lease-renew", "8"], "three times --lease-renew"),
        (["--lease-duration", "5", "--lease-renew", "1"], "more than 4 s"),
    ],
)
def test_a_lease_too_short_to_work_with_is_refused(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["operator", *arguments])
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())
