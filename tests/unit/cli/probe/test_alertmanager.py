from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main

TOKEN = "a-token-that-nobody-guesses"


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["probe", "alertmanager", *arguments], env={"KUBECONFIG": "/nowhere"})
    return found.exit_code, found.output


@pytest.fixture
def token(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--token-file"),
        (["--policy", "p"], "--token-file"),
        (["--policy", "p", "--once"], "--once is not supported"),
        (["--policy", "p", "--listen", "nonsense"], "not HOST:PORT"),
        (["--policy", "p", "--listen", ":0x50"], "not HOST:PORT"),
        (["--policy", "p", "--tls-cert", "c.pem"], "--tls-cert and --tls-key must be set together"),
        (["--policy", "p", "--insecure-no-auth"], "requires a loopback address"),
        (["--policy", "p", "--insecure-no-auth", "--listen", "0.0.0.0:9098"], "requires a loopback address"),
        (["--policy", "p", "--insecure-no-auth", "--listen", "kafka.example:9098"], "requires a loopback address"),
        (["--policy", "p", "--token-file", "/nowhere/token"], "name a file that holds the token"),
    ],
)
def test_what_is_missing_wrong_or_unsafe_is_named_before_anything_is_opened(arguments: list[str], said: str) -> None:
    status, output = run(*arguments)
    assert status != 0
    assert said in output


def test_no_authentication_and_a_token_exclude_one_another(token: str) -> None:
    arguments = ["--policy", "p", "--insecure-no-auth", "--token-file", token, "--listen", "127.0.0.1:9098"]
    assert "exclude each other" in run(*arguments)[1]


def test_a_token_that_is_too_short_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("tooFewWords")
    status, output = run("--policy", "p", "--token-file", str(path))
    assert status == 1
    assert "openssl rand" in output
    assert "tooFewWords" not in output


def test_without_a_kubernetes_api_it_says_so_and_no_token_shows(token: str) -> None:
    status, output = run("--policy", "p", "--token-file", token, "--listen", "127.0.0.1:9098")
    assert status == 1
    assert "KUBECONFIG" in output
    assert TOKEN not in output


def test_a_token_in_the_clear_is_warned_of(token: str) -> None:
    assert "token_sent_unencrypted" in run("--policy", "p", "--token-file", token)[1]
