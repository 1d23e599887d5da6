from __future__ import annotations

from pathlib import Path

import pytest

from bellwether_load.jobs.sessions import NoJava, find_java


def runtime(folder: Path) -> Path:
    """A program of that name."""
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    return java


def test_the_runtime_of_java_home_comes_first(tmp_path: Path):
    java = runtime(tmp_path)
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"}) == str(java)


def test_without_java_home_it_is_the_first_on_the_path(tmp_path: Path):
    java = runtime(tmp_path)
    assert find_java({"PATH": f"/nowhere:{java.parent}"}) == str(java)


def test_no_runtime_is_said_with_what_to_install():
    with pytest.raises(NoJava, match=r"there is none: none is on PATH\. Install a full Java 17 or newer"):
        find_java({"PATH": "/nowhere"})


def test_a_java_home_that_leads_nowhere_is_named(tmp_path: Path):
    with pytest.raises(NoJava, match=rf"JAVA_HOME is {tmp_path}, and {tmp_path}/bin/java is no program"):
        find_java({"JAVA_HOME": str(tmp_path)})
