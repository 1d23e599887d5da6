from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.ports.errors import Terminal
from bellwether_load.cli.prometheus_access import prometheus_access
from testkit.messages import assert_wording


def sample(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["sample", *arguments])
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--load-config'"),
        (("--store", "/x"), "--store requires --policy or --bootstrap"),
        (("--once",), "Missing option '--policy'"),
        (("--load-config", "x", "--prometheus", "http://p", "--consume-query", "up"), "with $namespace or $policy"),
        (("-A", "--bootstrap", "h:1"), "Set either --policy"),
        (("--policy", "p", "--bootstrap", "h:1"), "Set either --policy"),
        (("--policy", "p", "--command-config", "/dev/null"), "--command-config requires --bootstrap HOST:PORT"),
        (("--bootstrap", "h:1"), "Missing option '--store'"),
        (("--bootstrap", "h:1", "--load-config", "x"), "--load-config requires --policy"),
        (("--bootstrap", "nonsense", "--store", "x"), "not host:port"),
        (("--bootstrap", "h:1", "--store", "x", "--period", "0"), "--period"),
        (("--bootstrap", "h:1", "--store", "x", "--broker-timeout", "0"), "--broker-timeout"),
        (("--bootstrap", "h:1", "--store", "x", "--retention-days", "0"), "--retention-days"),
        (
            ("--bootstrap", "h:1", "--store", "x", "--prometheus", "prometheus:9090"),
            "is not a URL: use a value such as",
        ),
        (("--bootstrap", "h:1", "--store", "x", "--prometheus-credentials", "/"), "require --prometheus"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_remedy(arguments: tuple[str, ...], said: str) -> None:
    code, output = sample(*arguments)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_store_that_is_none_is_refused_without_its_secrets(tmp_path: Path) -> None:
    code, output = sample("--bootstrap", "127.0.0.1:1", "--store", "ftp://anna:opensesame@host/x", "--once")
    assert code == 1
    assert_wording(output)
    assert "opensesame" not in output


def test_a_cluster_that_does_not_answer_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    code, output = sample("--bootstrap", "127.0.0.1:1", "--store", str(tmp_path / "store"), "--once")
    assert code == 1
    assert_wording(output)
    assert not (tmp_path / "store").exists()


def test_credentials_and_headers_for_prometheus(tmp_path: Path) -> None:
    for name, content in (("username", "me"), ("password", "pr0m\n"), ("ca.crt", "")):
        (tmp_path / name).write_text(content)
    found = prometheus_access(tmp_path, ("X-Scope-OrgID=a=b",))
    assert (found.username, found.password, found.ca) == ("me", "pr0m", tmp_path / "ca.crt")
    assert found.headers == (("X-Scope-OrgID", "a=b"),)
    assert "pr0m" not in repr(found)


@pytest.mark.parametrize("files", [["username"], ["username", "password", "token"]])
def test_credentials_for_prometheus_that_cannot_work_are_refused(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        (tmp_path / name).write_text("x")
    with pytest.raises(Terminal, match="must have token, or username and password"):
        prometheus_access(tmp_path, ())


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("X-Scope-OrgID", "must be NAME=VALUE"),
        ("X=a\r\nHost: b", "must be NAME=VALUE"),
        ("authorization=x", "is reserved"),
    ],
)
def test_headers_for_prometheus_that_cannot_work_are_usage_errors(header: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=f"--prometheus-header.* {said}"):
        prometheus_access(None, (header,))
