"""The commands of the alert pages and of the runbook, as a person would copy them from there.

In: Markdown. Out: one ``PageCommand`` for each line of a block ``sh`` or ``promql``, continued lines as one, and for
each code span that is a command; a span such as ``bellwether doctor`` only names one. Called by the tests of the pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sourcetree import ROOT

_OTHERS = ("reasons", "runbook", "unreachable-brokers")
PAGES = (*sorted((ROOT / "docs" / "alerts").glob("*.md")), *(ROOT / "docs" / f"{name}.md" for name in _OTHERS))

_SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_CONTINUED = re.compile(r"( ?)\\\n *")
_COMMENT = re.compile(r"\s+# (.+)$")
_PROGRAM = re.compile(r"(?:kubectl|bellwether|openssl|kill|helm|kafka-[a-z-]+\.sh) ")
_NAME_ONLY = re.compile(r"bellwether(?: [a-z][a-z-]*)+")
_PLACEHOLDER = re.compile(r"HOST:PORT|BROKER:PORT|(?<![A-Za-z])(?!CONT\b)[A-Z]{2,}(?![A-Za-z])")


@dataclass(frozen=True)
class PageCommand:
    """A command with placeholders, and the comment behind it, which says what it shows."""

    page: str
    section: str
    text: str
    claim: str = ""
    query: bool = False
    """Whether it is PromQL."""


def commands(page: Path) -> tuple[PageCommand, ...]:
    """The commands of a page, in its order."""
    return tuple(_of_text(page.stem, page.read_text()))


def sections(text: str) -> Mapping[str, str]:
    """A page's text by heading of the second level."""
    return {title: body.strip() for title, body in _SECTION.findall(text)}


def placeholders(text: str) -> frozenset[str]:
    """The words in capitals of a command, which represent something else."""
    return frozenset(_PLACEHOLDER.findall(text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """A command with its placeholders replaced. Raises KeyError for one without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[0]], text)


def _of_text(page: str, text: str) -> Iterator[PageCommand]:
    for title, body in _SECTION.findall(f"## #\n{text}"):
        for language, block in _BLOCK.findall(body):
            for line in _CONTINUED.sub(r"\1", block).splitlines():
                claim = _COMMENT.search(line)
                yield PageCommand(page, title, _COMMENT.sub("", line), claim[1] if claim else "", language == "promql")
        for span in _SPAN.findall(_BLOCK.sub("", body)):
            one_line = " ".join(span.split())
            if _PROGRAM.match(one_line) and not _NAME_ONLY.fullmatch(one_line):
                yield PageCommand(page, title, one_line)
