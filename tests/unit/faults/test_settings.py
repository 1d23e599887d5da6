from pathlib import Path

import pytest

from faults.settings import Settings, parse

KNOWN = ("listener-cut", "disk-80ms")


def test_everything_is_run_by_default() -> None:
    assert parse([], KNOWN, {}) == Settings()


def test_only_comes_from_the_environment_as_make_passes_it() -> None:
    assert parse([], KNOWN, {"ONLY": "disk-80ms, listener-cut,"}).only == ("disk-80ms", "listener-cut")


def test_the_command_line_goes_before_the_environment(tmp_path: Path) -> None:
    chosen = parse(["--only", "disk-80ms", "--reports", str(tmp_path)], KNOWN, {"ONLY": "listener-cut"})
    assert (chosen.only, chosen.report) == (("disk-80ms",), tmp_path / "faults.json")


def test_an_unknown_scenario_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--only", "disk-80ms,disk-90ms"], KNOWN, {})
    assert "no such scenario: disk-90ms; --list says what there is" in capsys.readouterr().err
