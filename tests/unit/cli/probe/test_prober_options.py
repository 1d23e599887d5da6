"""A log directory on the command line: a path, or a name and a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellwether.cli.probe.prober_options import LogDirectory, log_directory


@pytest.mark.parametrize(
    ("given", "name", "path"),
    [
        ("/var/lib/kafka", "", "/var/lib/kafka"),
        ("relative", "", "relative"),
        ("data-0=/var/lib/kafka/data-0", "data-0", "/var/lib/kafka/data-0"),
        ("a=/b=c", "a", "/b=c"),
        ("/odd=path", "", "/odd=path"),
        ("./odd=path", "", "odd=path"),
    ],
)
def test_a_name_before_the_path_is_the_directorys(given: str, name: str, path: str) -> None:
    assert log_directory(given) == LogDirectory(Path(path), name)
