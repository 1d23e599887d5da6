"""What a build takes over from the machine: how to reach packages, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest

from images import machine

Told = Callable[..., None]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Let pip and apt say this of their settings."""

    def tell(pip: str = "", apt: str = "") -> None:
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(machine, "output", lambda *command: apt if command[0] == "apt-config" else pip)

    return tell


def settings(path: Path) -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.read(path)
    return dict(parser["global"])


def test_pips_way_to_an_index_is_taken_over_and_its_habits_are_not(told: Told, tmp_path: Path) -> None:
    told(
        pip="global.index-url='https://me:word@mirror.example.org/simple'\nglobal.no-color='true'\n:env:.timeout='9'\n"
    )
    found = machine.secrets(tmp_path / "secrets", "a canary")
    assert settings(found["pip.conf"]) == {"index-url": "https://me:word@mirror.example.org/simple", "timeout": "9"}


def test_the_environment_wins_over_pips_files(told: Told, tmp_path: Path) -> None:
    told(pip="global.proxy='http://a.example.org'\n:env:.proxy='http://b.example.org'\n")
    assert settings(machine.secrets(tmp_path / "s", "c")["pip.conf"])["proxy"] == "http://b.example.org"


def test_apts_way_to_a_mirror_is_taken_over_and_scripts_of_this_machine_are_not(told: Told, tmp_path: Path) -> None:
    told(
        apt='Acquire::http::Proxy "http://proxy.example.org:3128";\nAcquire::http::Proxy-Auto-Detect "/usr/bin/x";\n'
        'APT::Install-Recommends "0";\nAcquire::Retries "3";\n'
    )
    lines = machine.secrets(tmp_path / "s", "c")["apt.conf"].read_text().splitlines()
    assert lines[1:] == ['Acquire::http::Proxy "http://proxy.example.org:3128";', 'Acquire::Retries "3";']


def test_certificates_that_pip_was_told_of_serve_apt_and_pip(told: Told, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("a certificate\n")
    told(pip=f"global.cert='{bundle}'\n")
    found = machine.secrets(tmp_path / "s", "c")
    assert found["certificates.pem"].read_text().endswith("a certificate\n")
    assert settings(found["pip.conf"])["cert"] == machine.CERTIFICATES
    assert f'Acquire::https::CAInfo "{machine.CERTIFICATES}";' in found["apt.conf"].read_text()


def test_a_machine_without_settings_gives_none(told: Told, tmp_path: Path) -> None:
    told()
    found = machine.secrets(tmp_path / "s", "c")
    assert found.keys() == {"apt.conf", "pip.conf"}
    assert settings(found["pip.conf"]) == {}


def test_every_secret_holds_the_canary_and_is_for_its_owner_alone(told: Told, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("a certificate\n")
    told(pip=f"global.cert='{bundle}'\n")
    found = machine.secrets(tmp_path / "s", "a canary")
    assert len(found) == 3
    assert all("a canary" in path.read_text() for path in found.values())
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_without_root_it_says_what_to_do_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(machine.MachineLacks, match=r"building needs root: .*docs/image\.md"):
        machine.require_root("building")


def test_a_missing_program_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(machine.MachineLacks, match="apt-get install --no-install-recommends a-package"):
        machine.require_programs({"no-such-program-anywhere": "a-package"})


def test_a_program_that_is_there_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.require_programs({"sh": "dash"})
