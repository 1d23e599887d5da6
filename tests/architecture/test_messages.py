"""The catalogue of messages has an entry only for tests that exist, and a changed message is shown with what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from sourcetree import ROOT
from testkit.messages import CheckedTest, area

UNIT = ROOT / "tests" / "unit"


def entries_without_a_test(unit: Path, catalogue: Path) -> list[str]:
    """Entries of the catalogue whose test is gone, as ``file: stem: test``."""
    tests = {
        (area(path.relative_to(unit)), path.stem, name)
        for path in unit.rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    return [
        f"{file.name}: {stem}: {test}"
        for file in sorted(catalogue.glob("*.yaml"))
        for stem, entries in yaml.load(file.read_text(), yaml.CSafeLoader).items()
        for test in entries
        if (file.name, stem, test.partition("[")[0].rpartition("::")[2]) not in tests
    ]


def test_every_message_of_the_catalogue_belongs_to_a_test() -> None:
    assert entries_without_a_test(UNIT, ROOT / "tests" / "messages") == []


def test_a_message_whose_test_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "core" / "demotion").mkdir(parents=True)
    (tmp_path / "core" / "demotion" / "test_cap.py").write_text("    def test_it_holds(self): ...")
    entries = {"test_cap": {"TestTheCap::test_it_holds[1]": "held", "test_it_held": "held"}}
    (tmp_path / "core-demotion.yaml").write_text(yaml.dump(entries))
    assert entries_without_a_test(tmp_path, tmp_path) == ["core-demotion.yaml: test_cap: test_it_held"]


@pytest.mark.parametrize(
    ("known", "given", "refusal"),
    [
        (["old words"], ["new words"], r"core\.yaml; --update-golden accepts it"),
        ([], ["words"], "lacks this message; --update-golden adds it: 'words'"),
        (["words"], [], r"has 1 messages, the test gave 0"),
    ],
)
def test_a_changed_message_is_refused_with_what_accepts_it(known: list[str], given: list[str], refusal: str) -> None:
    checked = CheckedTest(known, "core.yaml", update=False)
    with pytest.raises(AssertionError, match=refusal):
        [checked.check(one) for one in given], checked.end()
