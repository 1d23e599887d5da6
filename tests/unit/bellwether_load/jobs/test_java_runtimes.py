from __future__ import annotations

from pathlib import Path

import pytest

from bellwether_load.jobs.sessions import NoJava, find_java


def runtime(folder: Path, modules: str, *, status: int = 0) -> Path:
    """A program that lists these modules as a Java runtime does."""
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f'#!/bin/sh\ntest "$1" = --list-modules || exit 9\ncat <<END\n{modules}\nEND\nexit {status}\n')
    java.chmod(0o755)
    return java


def test_the_runtime_of_java_home_comes_first(tmp_path: Path):
    java = runtime(tmp_path, "java.base@17.0.15\njdk.incubator.vector@17.0.15")
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"}) == str(java)


def test_without_java_home_it_is_the_first_on_the_path(tmp_path: Path):
    java = runtime(tmp_path, "java.base@25\njdk.incubator.vector@25")
    assert find_java({"PATH": f"/nowhere:{java.parent}"}) == str(java)


def test_no_runtime_is_said_with_what_to_install():
    with pytest.raises(NoJava, match=r"there is none: none is on PATH\. Install a full Java 17 or newer"):
        find_java({"PATH": "/nowhere"})


def test_a_java_home_that_leads_nowhere_is_named(tmp_path: Path):
    with pytest.raises(NoJava, match=rf"JAVA_HOME is {tmp_path}, and {tmp_path}/bin/java is no program"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_an_old_runtime_is_named_with_its_version(tmp_path: Path):
    java = runtime(tmp_path, "java.base@11.0.2\njdk.incubator.vector@11.0.2")
    with pytest.raises(NoJava, match=rf"^{java} is Java 11: Spark needs Java 17 or newer"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_runtime_that_knows_no_modules_is_too_old(tmp_path: Path):
    runtime(tmp_path, "Unrecognized option: --list-modules", status=1)
    with pytest.raises(NoJava, match="is too old, or no Java at all"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_runtime_without_the_vector_module_is_refused(tmp_path: Path):
    runtime(tmp_path, "java.base@25.0.1\njava.logging@25.0.1")
    with pytest.raises(NoJava, match=r"has no module jdk\.incubator\.vector, which Spark needs"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_program_that_cannot_be_run_is_no_runtime(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_bytes(b"\x7fELF no program at all")
    (tmp_path / "bin" / "java").chmod(0o755)
    with pytest.raises(NoJava, match="cannot be run"):
        find_java({"JAVA_HOME": str(tmp_path)})
