"""Plain English: no literary word in README, CONTRIBUTING, user documentation, examples' READMEs, CRDs and CLI help.

The chart's values, notes and README, the alert rules and the help texts of metrics (docs/reference/metrics.md) are
checked, too, as are all strings and comments of the source and the configuration files. Decisions are history and are
left out, as are other generated pages, code, links and the parts of a page that a benchmark writes. Names and texts of
the tests have a limit in ``test_budget.py`` that only falls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from bellwether.api.v1alpha1.schema.crd_manifests import KINDS
from bellwether.cli.main import main
from bellwether_load.__main__ import main as load_main
from sourcetree import LITERARY_WORD as WORD
from sourcetree import ROOT, prose_lines, texts

PAGES = ("README.md", "CONTRIBUTING.md", "docs/", "examples/", "helm/bellwether/")
LEFT_OUT = ("docs/decisions/", *(f"docs/reference/{kind.name.lower()}.md" for kind in KINDS), "docs/states.md")
SOURCES = ("operator/", "spark/", "helm/", "examples/", "docs/")
CONFIGURATION = (".importlinter", ".ci/run", "Dockerfile", "Makefile", "pyproject.toml")
CHART_TEXTS = ("helm/bellwether/values.yaml", "helm/bellwether/templates/", "helm/bellwether/files/alerts/")

NO_PROSE = re.compile(r"^ *```.*?^ *```|<!-- figures.*?<!-- end of figures -->|`[^`\n]*`|\]\([^)\n]*\)", re.M | re.S)


def literary_words(root: Path) -> list[str]:
    """Every literary word, as ``file:line: word``."""
    found = []
    for path, text in texts(root).items():
        name = path.relative_to(root).as_posix()
        page = path.suffix == ".md" and name.startswith(PAGES) and not name.startswith(LEFT_OUT)
        if page or name.startswith(CHART_TEXTS) or name in CONFIGURATION:
            prose = NO_PROSE.sub(lambda part: "\n" * part[0].count("\n"), text)
            for number, line in enumerate(prose.splitlines(), 1):
                found += [f"{name}:{number}: {word}" for word in WORD.findall(line)]
    return found


def literary_words_in_source(root: Path) -> list[str]:
    """Every literary word in strings and comments of the code that users install or copy, as ``file:line: word``."""
    found = []
    for path, text in texts(root).items():
        name = path.relative_to(root).as_posix()
        if path.suffix == ".py" and name.startswith(SOURCES) and WORD.search(text):
            for number, line in prose_lines(text):
                found += [f"{name}:{number}: {word}" for word in WORD.findall(line)]
    return found


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Help of a command, its options and its subcommands, each with its place."""
    yield name, command.help or ""
    for option in command.params:
        if isinstance(option, click.Option):
            yield f"{name} {option.opts[-1]}", option.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from help_texts(found, f"{name} {verb}")


def literary_words_of_help(command: click.Command, name: str) -> list[str]:
    """Every literary word in the help of a command and its subcommands, and every option without help."""
    found = []
    for place, text in help_texts(command, name):
        found += (
            [f"{place}: {word}" for word in WORD.findall(NO_PROSE.sub("", text))] if text else [f"{place}: no help"]
        )
    return found


def test_the_documentation_is_in_plain_english() -> None:
    assert literary_words(ROOT) == []


@pytest.mark.parametrize(("command", "name"), [(main, "bellwether"), (load_main, "bellwether_load")])
def test_the_help_of_every_command_is_in_plain_english(command: click.Command, name: str) -> None:
    assert literary_words_of_help(command, name) == []


def test_a_literary_word_in_help_is_found_with_its_option() -> None:
    option = click.Option(["-x", "--exclude"], help="Whom nobody asked.")
    group = click.Group("tool", [click.Command("move", params=[option], help="Hand over leaders.")], help="A tool.")
    assert literary_words_of_help(group, "tool") == ["tool move: Hand over", "tool move --exclude: nobody"]
    silent = click.Command("move", params=[click.Option(["--wait"])])
    assert literary_words_of_help(silent, "move") == ["move: no help", "move --wait: no help"]


def test_the_source_is_in_plain_english() -> None:
    assert literary_words_in_source(ROOT) == []


def test_a_literary_word_in_a_string_or_a_comment_is_found_and_one_in_code_is_not(tmp_path: Path) -> None:
    (tmp_path / "operator").mkdir()
    (tmp_path / "operator" / "one.py").write_text('told = 1  # nobody\n"""A ``told`` value.\n\nIt stands.\n"""\n')
    assert literary_words_in_source(tmp_path) == ["operator/one.py:1: nobody", "operator/one.py:4: stands"]


@pytest.mark.parametrize("word", ["amiss", "Whoever", "hands over", "stands", "passed over", "of its own accord"])
def test_a_literary_word_is_found_with_its_line(tmp_path: Path, word: str) -> None:
    (tmp_path / "docs" / "alerts").mkdir(parents=True)
    (tmp_path / "docs" / "alerts" / "Page.md").write_text(f"```\ncode\n```\nfine, and {word} here\n")
    assert literary_words(tmp_path) == [f"docs/alerts/Page.md:4: {word}"]


@pytest.mark.parametrize(
    "name",
    [
        "docs/reference/metrics.md",
        "helm/bellwether/README.md",
        "helm/bellwether/values.yaml",
        "helm/bellwether/templates/NOTES.txt",
        "helm/bellwether/files/alerts/brokers.yaml",
        "pyproject.toml",
    ],
)
def test_texts_of_metrics_chart_alerts_and_configuration_are_checked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("# nobody is told\n")
    assert literary_words(tmp_path) == [f"{name}:1: nobody", f"{name}:1: told"]


@pytest.mark.parametrize("text", ["it stands by", "a stand-by", "`nobody`", "[a](mended.md)", "```\ntold\n```"])
def test_a_term_and_code_are_let_through(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text)
    (tmp_path / "notes.md").write_text("not a page: somebody")
    assert literary_words(tmp_path) == []


def literary_words_in_crds(root: Path) -> list[str]:
    """Every literary word of descriptions, messages and all other text in ``crds/``, as ``file: field: word``."""
    return [
        f"{path.name}: {field}: {word}"
        for path in sorted((root / "crds").glob("*.yaml"))
        for field, text in _strings(yaml.safe_load(path.read_text()), "")
        for word in WORD.findall(text)
    ]


def _strings(value: object, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from _strings(below, f"{field}.{key}")


def test_the_custom_resource_definitions_are_in_plain_english() -> None:
    assert literary_words_in_crds(ROOT) == []


def test_literary_word_in_definition_is_found_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "one.yaml").write_text(
        "spec:\n- description: fine, and hands\n    over leaders\n  type: string\n"
    )
    assert literary_words_in_crds(tmp_path) == ["one.yaml: .spec.0.description: hands over"]
