"""The storage prober's command: one table of all directories, and what it refuses to start with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.commands.probe import probe


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(probe, ["storage", *arguments])
    return done.exit_code, done.output


def test_one_measurement_is_a_table_of_all_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    directories = [f"--directory={name}={tmp_path / name}" for name in ("a", "b")]
    _, said = run("--once", "-o", "json", *directories)
    rows = [(row["directory"], row["operation"]) for row in json.loads(said)]
    assert rows == [(str(tmp_path / name), what) for name in ("a", "b") for what in ("write", "sync", "read")]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_one_directory_that_cannot_be_measured_is_found_among_good_ones(tmp_path: Path) -> None:
    code, said = run("--once", f"--directory=a={tmp_path}", f"--directory=b={tmp_path / 'none'}")
    assert code == 4
    assert "the directory does not exist" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--directory", "/a", "--directory", "b=/b"], "--directory /a: it is one of 2 directories"),
        (["--directory", "a=/a", "--directory", "a=/b"], "2 directories have the name a"),
        (["--directory", "a=/a", "--directory", "b=/a"], "2 directories have the path /a"),
        (["--directory", "a=/a", "--directory", "b=/b", "--log-dir", "/c"], "--log-dir /c: 2 directories are given"),
        (["--directory", "a b=/a"], "the name 'a b' must have 1 to 63 letters"),
        (["--directory", f"{'a' * 64}=/a"], "must have 1 to 63 letters"),
        (["--directory", "=/a"], "the name '' must have 1 to 63 letters"),
        (["--directory", "a="], "'a=' has no path"),
        (["--directory", ""], "'' has no path"),
        (["--directory", "a=/a", "--directory", "b=/b"], "'--policy'"),
    ],
)
def test_what_is_missing_or_wrong_is_named_by_its_option(arguments: list[str], complaint: str) -> None:
    code, said = run(*arguments)
    assert (code, complaint in said) == (2, True), said
