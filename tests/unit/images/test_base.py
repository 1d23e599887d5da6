"""Where the base's packages come from: this machine's own mirrors, by what they say of themselves."""

from __future__ import annotations

import pytest

from images import base, machine

LISTED = """\
Debian http://mirror.example.org/debian/
Debian-Security http://mirror.example.org/security/
Docker http://other.example.org/docker/
"""


def told(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    monkeypatch.setattr(machine, "output", lambda *_command: listed)


def test_the_sources_are_the_release_its_updates_and_its_security(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, LISTED)
    assert base.sources("deb http://mirror.example.org/debian trixie main\n").splitlines() == [
        "deb http://mirror.example.org/debian trixie main",
        "deb http://mirror.example.org/debian trixie-updates main",
        "deb http://mirror.example.org/security/ trixie-security main",
    ]


def test_a_machine_that_names_no_security_mirror_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "")
    assert len(base.sources("deb http://mirror.example.org/debian trixie main\n").splitlines()) == 2


def test_another_mirror_is_another_base(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, LISTED)
    one = base.version()
    told(monkeypatch, LISTED.replace("mirror", "another"))
    assert base.version() != one
    assert base.version().startswith("trixie-")


def test_mirrors_of_other_projects_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, LISTED)
    one = base.version()
    told(monkeypatch, LISTED.replace("other", "yet-another"))
    assert base.version() == one
