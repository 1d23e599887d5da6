"""Reading an example's README: which commands are in it, and whether what they print is what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testkit.processes.readme_runner import Step, steps

README = """# A title

```
$ kubectl apply -f policy.yaml
```

Words, and `$ no command`.

## The first section

```
$ kubectl get lp \\
    main
NAME   MODE
main   Enforce
$ kubectl get bh
...
```
"""


def test_commands_are_found_under_their_headings_with_what_they_are_shown_to_print() -> None:
    assert steps(README) == {
        "A title": [Step("kubectl apply -f policy.yaml", "")],
        "The first section": [
            Step("kubectl get lp \\\n    main", "NAME   MODE\nmain   Enforce"),
            Step("kubectl get bh", "..."),
        ],
    }


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("", "anything\n", True),
        ("main   Enforce", "main Enforce\n", True),
        ("main   Enforce", "main   Observe\n", False),
        ("main   Enforce", "main   Enforce\nother   Enforce\n", False),
        ("first\n...\nlast", "first\nsecond\nthird\nlast\n", True),
        ("first\n...\nlast", "first\nsecond\n", False),
        ("topic id ... is gone", "topic id x9_-A is gone\n", True),
        ("topic id ... is gone", "topic id x9_-A\nis gone\n", False),
        ("a.c", "abc\n", False),
    ],
)
def test_what_is_printed_must_be_what_is_shown_but_for_blanks_and_ellipses(
    shown: str, printed: str, fits: bool
) -> None:
    assert Step("kubectl get lp", shown).fits(printed) is fits


def test_every_command_of_the_examples_that_are_followed_is_one_that_a_guide_offers() -> None:
    offered = {"kubectl", "kafka-topics.sh", "kafka-reassign-partitions.sh", "kafka-producer-perf-test.sh"}
    examples = Path(__file__).parents[3] / "examples" / "placement"
    for name in ("capacity", "several-demoted", "coexistence"):
        found = [step for taken in steps((examples / name / "README.md").read_text()).values() for step in taken]
        assert found
        assert {step.command.split()[0] for step in found} <= offered


def test_every_heading_that_a_slow_test_follows_exists() -> None:
    """Found out here within a second; by the tests themselves only when their turn among the slow ones comes."""
    root = Path(__file__).parents[3]
    followed = {
        heading
        for test in (root / "tests" / "integration").rglob("test_*.py")
        for heading in re.findall(r'guide\.follow\("([^"]+)"', test.read_text())
    }
    there = {heading for readme in (root / "examples").rglob("README.md") for heading in steps(readme.read_text())}
    assert followed
    assert followed <= there
