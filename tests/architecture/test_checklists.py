"""What a new signal type and a new command need next to their own code; CONTRIBUTING.md has the same lists in words.

A place that is missing is named with its file and what belongs there. What is generated, such as the CRDs, is not on
the lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli import probe
from bellwether.cli.main import main
from bellwether.core.signals import SIGNALS, SignalType
from bellwether.probes.prober_commands import PROBERS
from sourcetree import ROOT, texts

EXAMPLE = "examples/policies/full.yaml"
SOURCES = "examples/policies/signal-sources.yaml"
GUIDE = "docs/detection.md"
RUNBOOK = "docs/reasons.md"
OPERATOR = "operator/bellwether"
SETTINGS = f"{OPERATOR}/core/settings/detection.py"
TABLE = f"{OPERATOR}/probes/prober_commands.py"


@cache
def tree(root: Path) -> dict[str, str]:
    """Every text of the project by its path."""
    return {path.relative_to(root).as_posix(): text for path, text in texts(root).items()}


def named_in(found: dict[str, str], folder: str, what: str, suffix: str = "") -> bool:
    """Whether a file below the folder contains the text."""
    return any(what in text for path, text in found.items() if path.startswith(folder) and path.endswith(suffix))


def mentioned(found: dict[str, str], folders: tuple[str, ...], pattern: str) -> bool:
    """Whether a file below one of the folders matches the pattern."""
    return any(re.search(pattern, text) for path, text in found.items() if path.startswith(folders))


def lacking_for_signal(type_: str, member: str, found: dict[str, str]) -> Iterator[str]:
    """Places that a signal type lacks, each with what belongs there. ``member`` is its name in ``SignalType``."""
    use, field = f"SignalType.{member}", type_[:1].lower() + type_[1:]
    named = rf"\b(?:{type_}|{re.escape(use)})\b"
    traits = SIGNALS.get(type_)
    if traits is None and type_ != SignalType.PROMETHEUS:
        yield f"{OPERATOR}/core/signals.py: a row in SIGNALS; {SETTINGS}: its settings"
    elif not ((traits and traits.by_reading) or named_in(found, f"{OPERATOR}/core/detection/", use, ".py")):
        yield f"{OPERATOR}/core/detection/: a finding that judges it ({use}), as its reading alone is not judged"
    for reason in traits.reasons if traits is not None else ():
        if f"| `{reason}` |" not in found[RUNBOOK]:
            yield f"{RUNBOOK}: a row for the reason {reason}"
    if not named_in(found, f"{OPERATOR}/probes/", use, ".py"):
        yield f"{OPERATOR}/probes/: a probe that reports it ({use})"
    if not any(type_ in one.types for one in PROBERS.values()):
        yield f"{TABLE}: its prober, a row in PROBERS"
    example, sources = yaml.safe_load(found[EXAMPLE]), [*yaml.safe_load_all(found[SOURCES])]
    settings = next((one["spec"][field] for one in sources if field in one["spec"]), None)
    settings = example["spec"]["detection"].get(field, settings)
    if settings is None:
        yield f"{EXAMPLE}: its settings, spec.detection.{field}"
    else:
        if "enabled" in settings:
            settings["enabled"] = True
        if not _judged(LeadershipPolicy.read(example).with_sources(sources), type_):
            yield f"{SETTINGS}: how long it is valid (stale_after_seconds)"
    row = re.search(
        rf"^\| `{type_}` \| `bellwether probe ([a-z]+)`.*\| (?:below|\[.*\]\((.+)\)) \|$", found[GUIDE], re.MULTILINE
    )
    if row is None:
        yield f"{GUIDE}: a row in 'Choosing signals' that names its prober and its page"
    elif row[2] and not re.search(rf"\bprobe,? {row[1]}\b", found.get(f"docs/{row[2]}", "")):
        yield f"docs/{row[2]}: its page, which {GUIDE} names"
    elif row[1] not in probe.VERBS:
        yield f"{OPERATOR}/cli/probe/: the prober `bellwether probe {row[1]}`, which {GUIDE} names"
    elif not _started(row[1], named, found):
        yield f"tests/integration/: a test that starts `bellwether probe {row[1]}` and names {type_}"
    if not mentioned(found, ("tests/unit/",), named):
        yield f"tests/unit/: a test that names {type_}"
    if not re.search(rf"\b{type_}\b|\b{field}\b|`bellwether probe {row and row[1]}`", found["CHANGELOG.md"]):
        yield f"CHANGELOG.md: a line that names {type_} or its prober"


def _started(verb: str, named: str, found: dict[str, str]) -> bool:
    """Whether one file of integration tests starts the prober and names the type of signals."""
    start = re.compile(rf'"{verb}"|\bprobe {verb}\b')
    texts_ = (text for path, text in found.items() if path.startswith("tests/integration/"))
    return any(start.search(text) and re.search(named, text) for text in texts_)


def _judged(policy: LeadershipPolicy, type_: str) -> bool:
    """Whether a signal of some source is judged: of any, or of a Prometheus rule."""
    detection = policy.policy().detection
    sources = ["any", *(rule.name for rule in detection.prometheus_rules)]
    return any(detection.stale_after(type_, source) is not None for source in sources)


def lacking_for_verb(verb: str, target: str, found: dict[str, str]) -> Iterator[str]:
    """Places that a command lacks, each with what belongs there."""
    folder = "spark" if target.startswith("bellwether_load.") else "operator"
    code = f"{folder}/{target.partition(':')[0].replace('.', '/')}.py"
    if code not in found:
        yield f"{code}: its options, help and work"
    last = verb.rpartition(" ")[2]
    if not mentioned(
        found,
        ("tests/unit/cli/", "tests/unit/bellwether_load/cli/", "tests/integration/"),
        rf'"{last}"|\b{re.escape(verb)}\b',
    ):
        yield f"tests/unit/cli/ or tests/integration/: a test that runs `bellwether {verb}`"
    if not any(
        re.search(rf"bellwether {re.escape(verb)}\b", text)
        for path, text in found.items()
        if path.endswith(".md") and path.startswith(("docs/", "README.md")) and not path.startswith("docs/decisions/")
    ):
        yield f"docs/: the page that says when to use `bellwether {verb}`"
    if not verb.startswith("probe ") and not re.search(rf"`(?:bellwether )?{verb}\b", found["CHANGELOG.md"]):
        yield f"CHANGELOG.md: `{verb}` among the commands"


COMMANDS = {verb: target for verb, target in main.verbs.items() if verb != "probe"} | {
    f"probe {verb}": target for verb, target in probe.VERBS.items()
}


@pytest.mark.parametrize("kind", list(SignalType))
def test_a_signal_type_has_all_of_its_places(kind: SignalType) -> None:
    lacking = list(lacking_for_signal(kind, kind.name, tree(ROOT)))
    assert not lacking, "\n".join(["it lacks:", *lacking])


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_has_all_of_its_places(verb: str) -> None:
    lacking = list(lacking_for_verb(verb, COMMANDS[verb], tree(ROOT)))
    assert not lacking, "\n".join(["it lacks:", *lacking])


@pytest.mark.parametrize(("heading", "most"), [("How to add a signal", 8), ("How to add a command", 2)])
def test_recipes_of_signals_and_commands_stay_short(heading: str, most: int) -> None:
    recipe = tree(ROOT)["CONTRIBUTING.md"].partition(f"## {heading}")[2].partition("\n## ")[0]
    places = [row.split("|")[1] for row in recipe.splitlines() if row.startswith("| `")]
    assert 0 < len(places) <= most
    assert [path for row in places for path in re.findall(r"`([^`]+)`", row) if not (ROOT / path).exists()] == []


def test_a_new_signal_type_gets_each_place_that_it_lacks() -> None:
    lacking = [place.partition(":")[0] for place in lacking_for_signal("PaintColour", "PAINT_COLOUR", tree(ROOT))]
    assert lacking == [
        "operator/bellwether/core/signals.py",
        "operator/bellwether/probes/",
        TABLE,
        EXAMPLE,
        GUIDE,
        "tests/unit/",
        "CHANGELOG.md",
    ]


def test_a_new_command_gets_each_place_that_it_lacks() -> None:
    target = "bellwether.cli.leadership.teleport:teleport"
    lacking = [place.partition(":")[0] for place in lacking_for_verb("teleport", target, tree(ROOT))]
    assert lacking == [
        "operator/bellwether/cli/leadership/teleport.py",
        "tests/unit/cli/ or tests/integration/",
        "docs/",
        "CHANGELOG.md",
    ]
