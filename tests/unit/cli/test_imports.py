"""What a command imports: help and completion wait for no client, and a missing extra is named with its remedy."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.adapters.undo_record_codec import export_record
from bellwether.cli import probe
from bellwether.cli.main import main
from bellwether.core.model.undo_record import UndoRecord

HEAVY = (
    "aiohttp", "confluent_kafka", "kafka", "kafka.admin", "kafka.consumer", "kopf", "kubernetes", "numpy",
    "prometheus_client", "pyarrow", "pydantic", "requests", "rich", "structlog", "urllib3", "yaml",
)  # fmt: skip

RUN = """
import atexit, os, sys
for absent in {absent!r}:
    sys.modules[absent] = None
os.environ.update({environment!r})
atexit.register(lambda: print("imported:", *({heavy!r} & sys.modules.keys()), file=sys.stderr))
from bellwether.cli.main import main
main({arguments!r}, prog_name="bellwether")
"""


def started(
    *arguments: str, absent: tuple[str, ...] = (), **environment: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The command in a process of its own, and which of the heavy packages it has imported."""
    program = RUN.format(arguments=arguments, absent=absent, environment=environment, heavy=set(HEAVY))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done, done.stderr.rpartition("imported:")[2].split()


def test_help_imports_nothing_that_only_running_needs() -> None:
    words = [[], *([verb] for verb in main.verbs), *(["probe", verb] for verb in probe.VERBS)]
    program = (
        "import sys\n"
        "from bellwether.cli.main import main\n"
        f"for words in {words!r}:\n"
        "    main([*words, '--help'], prog_name='bellwether', standalone_mode=False)\n"
        f"    print('imported:', *words, *({set(HEAVY)!r} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("imported:")]
    assert imported == words
    assert done.stdout.count("Usage: ") == len(words)


@pytest.mark.parametrize("verb", ["demote", "promote"])
def test_leaders_are_moved_by_hand_without_any_client(verb: str, tmp_path: Path) -> None:
    record = tmp_path / "undo.json"
    record.write_bytes(export_record(UndoRecord("some-cluster")))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        done, imported = started(verb, "1", "--bootstrap", address, "--record", str(record))
    assert f"no broker answered: {address}" in done.stderr
    assert sorted(imported) == ["kafka", "pydantic"]


@pytest.mark.parametrize("verb", ["status", "suspend", "drain"])
def test_without_a_cluster_no_client_is_imported(verb: str, tmp_path: Path) -> None:
    arguments = ["1"] if verb == "drain" else []
    done, imported = started(verb, *arguments, KUBECONFIG=str(tmp_path / "none"))
    assert "no Kubernetes API is configured" in done.stderr
    assert imported == []


def test_the_cluster_is_read_before_the_rest_of_the_command_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from bellwether.cli.main import main\n"
        "from bellwether.cli.offline import manual_demotion\n"
        "manual_demotion.EarlyReader = lambda *_: sys.exit('bellwether.reconcile' in sys.modules)\n"
        f"main(['demote', '1', '--bootstrap', 'a:1', '--record', {str(tmp_path / 'undo.json')!r}])\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_override_is_set_without_a_kafka_client() -> None:
    done, imported = started("demote", "1", "--policy", "main", KUBECONFIG="/nowhere")
    assert done.returncode == 1
    assert {"kafka", "confluent_kafka"}.isdisjoint(imported)


@pytest.mark.parametrize("words", ["plan", "why orders/0", "doctor", "elect"])
def test_plans_import_no_logs_or_kafka_before_their_policy(words: str) -> None:
    done, imported = started(*words.split(), "--policy", "main", KUBECONFIG="/nowhere")
    assert done.returncode == 1
    assert {"kafka", "rich", "structlog"}.isdisjoint(imported)


@pytest.mark.parametrize(("typed", "offered"), [("bellwether dem", "demote"), ("bellwether drain --en", "--end")])
def test_completion_imports_nothing_that_only_running_needs(typed: str, offered: str) -> None:
    place = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done, imported = started(_BELLWETHER_COMPLETE="bash_complete", **place)
    assert offered in done.stdout
    assert imported == []


@pytest.mark.parametrize("group", [[], ["probe"], ["undo-record"]], ids=" ".join)
def test_the_line_on_each_verb_fits_a_terminal_of_80_columns(group: list[str]) -> None:
    listed = (
        CliRunner()
        .invoke(main, [*group, "--help"], terminal_width=80)
        .output.partition("Show this message and exit.")[2]
    )
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    ("words", "absent", "extra"),
    [
        ("operator", "kopf", "operator"),
        ("sample --bootstrap a:1 --store /nowhere", "pyarrow", "load"),
        ("rebalance show --store /nowhere", "pyarrow", "load"),
        ("verify-plan --problem p --loads l --plan p", "pyarrow", "load"),
        ("rebalance --bootstrap a:1 --store /nowhere --dry-run", "pyarrow", "load"),
        ("doctor --bootstrap a:1 --store /nowhere", "pyarrow", "load"),
    ],
)
def test_a_verb_whose_extra_is_missing_says_what_to_install(words: str, absent: str, extra: str) -> None:
    done, _ = started(*words.split(), absent=(absent,))
    verb = " ".join(words.partition(" --")[0].split())
    said = f"Error: `bellwether {verb}` needs the extra {extra}: pip install 'bellwether-kafka[{extra}]'"
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, said)


def test_a_missing_package_that_no_extra_brings_is_an_error_of_the_installation(tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    done, _ = started("check", absent=("requests",), KUBECONFIG=str(tmp_path / "config"))
    assert "ModuleNotFoundError" in done.stderr
