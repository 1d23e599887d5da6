from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.probes.plugins import plugin_discovery


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["probe", "plugin", *arguments])
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "p"], "--type"),
        (["--type", "Kind", "--once"], "--policy"),
        (["--type", "Kind", "--bootstrap", "h:1"], "require --once"),
        (["--type", "Kind", "--policy", "p", "--setting", "a=b"], "--setting requires --bootstrap"),
        (
            ["--type", "Nobodys", "--policy", "p", "--source", "s"],
            "no installed package provides the signal type Nobodys",
        ),
        (["--type", "Prometheus", "--policy", "p", "--source", "s"], "a built-in signal type"),
        (["--type", "no kind", "--policy", "p", "--source", "s"], "UpperCamelCase"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: list[str], said: str) -> None:
    status, output = run(*arguments)
    assert status != 0
    assert said in output


def test_the_list_names_what_is_installed_and_why_something_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "halfdone-2.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: halfdone\nVersion: 2.5\n")
    (folder / "entry_points.txt").write_text(f"[{plugin_discovery.GROUP}]\nHalfDone = halfdone_module:Kind\n")
    status, output = run("--list")
    (line,) = (line for line in output.splitlines() if line.startswith("HalfDone"))
    assert "halfdone 2.5" in line
    assert "cannot be loaded: ModuleNotFoundError" in line
    assert status == 4


def test_a_setting_without_a_value_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "wellkind.py").write_text("class Kind:\n    type = 'Well'\n    def measure(self, a, b, c, d): ...\n")
    folder = tmp_path / "wellkind-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: wellkind\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[{plugin_discovery.GROUP}]\nWell = wellkind:Kind\n")
    status, output = run("--type", "Well", "--once", "--bootstrap", "127.0.0.1:1", "--setting", "limit")
    assert status == 2
    assert "'limit' is not NAME=VALUE" in output
