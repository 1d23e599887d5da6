from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main


def sample(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["sample", *arguments])
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name the cluster: --policy, or --bootstrap"),
        (("--policy", "p", "--bootstrap", "h:1"), "Name the cluster"),
        (("--policy", "p", "--tls"), "go together with --bootstrap"),
        (("--bootstrap", "h:1"), "Missing option '--store'"),
        (("--bootstrap", "nonsense", "--store", "x"), "not host:port"),
        (("--bootstrap", "h:1", "--store", "x", "--period", "0"), "--period"),
        (("--bootstrap", "h:1", "--store", "x", "--broker-timeout", "0"), "--broker-timeout"),
        (("--bootstrap", "h:1", "--store", "x", "--retention-days", "0"), "--retention-days"),
        (("--bootstrap", "h:1", "--store", "x", "--prometheus", "prometheus:9090"), "must be a URL such as"),
        (("--bootstrap", "h:1", "--store", "x", "--prometheus-ca", __file__), "go together with --prometheus"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_remedy(arguments: tuple[str, ...], said: str) -> None:
    code, output = sample(*arguments)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_store_that_is_none_is_refused_without_its_secrets(tmp_path: Path) -> None:
    code, output = sample("--bootstrap", "127.0.0.1:1", "--store", "ftp://anna:opensesame@host/x", "--once")
    assert code == 1
    assert "ftp://host/x: is no store" in output
    assert "opensesame" not in output


def test_a_cluster_that_does_not_answer_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    code, output = sample("--bootstrap", "127.0.0.1:1", "--store", str(tmp_path / "store"), "--once")
    assert code == 1
    assert "no broker answered: 127.0.0.1:1: cannot connect" in output
    assert not (tmp_path / "store").exists()
