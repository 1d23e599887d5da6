"""The documents lead somewhere: every link and every named file exists, and every reason that we give is explained."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bellwether import documentation
from bellwether.core.detection.finding_messages import WORDS
from bellwether.core.doctor.unhealthy_leaders import ACKS_ALL_FIGURES
from bellwether.core.reasons import Reason
from sourcetree import ROOT, texts

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
NAMED = re.compile(r"`((?:operator|spark|tests|examples|docs|crds|requirements|\.ci)/[\w./-]*)`")
TEST = re.compile(r"`((?:unit|integration|properties|scenarios|architecture)/[\w./-]*)`")
"""A path below ``tests/``, as tables of tests have it."""


def dead_ends(root: Path) -> list[str]:
    """Links and named files that do not exist, as ``document: target``.

    Decisions are history and may name what is gone.
    """
    found = set()
    for path, text in texts(root).items():
        name = path.relative_to(root).as_posix()
        if path.suffix != ".md":
            continue
        found |= {f"{name}: {link}" for link in LINK.findall(text) if not (path.parent / link).exists()}
        if not name.startswith("docs/decisions/"):
            found |= {f"{name}: {named}" for named in NAMED.findall(text) if not (root / named).exists()}
            found |= {f"{name}: {test}" for test in TEST.findall(text) if not (root / "tests" / test).exists()}
    return sorted(found)


def test_every_link_and_every_named_file_exists() -> None:
    assert dead_ends(ROOT) == []


def test_a_dead_link_and_a_missing_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "[on](docs/on.md) [off](docs/off.md#x) [web](https://example.com) `operator/gone.py` `docs/` `unit/gone.py`"
    )
    (tmp_path / "docs" / "on.md").write_text("[back](../README.md)")
    assert dead_ends(tmp_path) == ["README.md: docs/off.md", "README.md: operator/gone.py", "README.md: unit/gone.py"]


def lost_addresses(root: Path) -> list[str]:
    """Addresses of our own site that no page of the tree has, as ``file: address``."""
    site = documentation.HOME.split("/")[2]
    pages = {documentation.page(path.relative_to(root / "docs").as_posix()): path for path in _pages(root)}
    return sorted(
        f"{path.relative_to(root).as_posix()}: {address}"
        for path, text in texts(root).items()
        for address in set(re.findall(rf"https?://{site}(?:/[^\s\"'`|)]*[^\s\"'`|).,;:])?", text))
        if not any(
            address == known or (address.startswith(f"{known}#") and _section(page, address.partition("#")[2]))
            for known, page in pages.items()
        )
        and address not in WRITTEN
    )


WRITTEN = {documentation.page("alerts/") + written for written in ("<AlertName>/", "${__value.raw}/", "{{")}
WRITTEN |= {documentation.HOME.removesuffix("latest/")}


def _pages(root: Path) -> list[Path]:
    return sorted((root / "docs").rglob("*.md"))


def _section(page: Path, anchor: str) -> bool:
    """Whether the page has a heading, or a row of a table, with this anchor."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return anchor in slugs or anchor == "${__value.raw}" or f"| `{anchor}` |" in text


def test_every_address_of_the_site_has_its_page() -> None:
    assert lost_addresses(ROOT) == []


def test_an_address_without_a_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "on.md").write_text("# On\n| `Row` |")
    lost = [documentation.page(path) for path in ("off.md", "on.md#off")]
    lost.append(documentation.HOME.replace("/latest/", "/1.0/"))
    found = [documentation.page(path) for path in ("on.md", "on.md#on", "on.md#Row")]
    (tmp_path / "a.py").write_text("\n".join([*lost, *found]))
    assert lost_addresses(tmp_path) == sorted(f"a.py: {address}" for address in lost)


def unexplained(runbook: str) -> list[str]:
    """Reasons that no row of the runbook's tables begins with."""
    explained = {
        name
        for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", runbook, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
    return sorted(set(Reason) - explained)


def test_the_runbook_explains_every_reason() -> None:
    assert unexplained((ROOT / "docs" / "reasons.md").read_text()) == []


def test_the_runbook_explains_every_cause_of_an_unreachable_broker_in_the_words_of_the_verdict() -> None:
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \|", (ROOT / "docs" / "unreachable-brokers.md").read_text(), re.MULTILINE)
    assert {(words.what, str(cause)) for cause, words in WORDS.items()} == set(rows)


def test_a_reason_without_a_row_is_found() -> None:
    rows = "\n".join(f"| `{reason}` | means | do |" for reason in Reason if reason is not Reason.BROKER_DOWN)
    assert unexplained(rows) == ["BrokerDown"]


def test_the_runbook_explains_each_reason_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "reasons.md").read_text(), re.MULTILINE)
    assert [name for name, times in Counter(rows).items() if times > 1] == []


def test_pages_and_messages_have_measured_figures_of_slow_disk() -> None:
    table = (ROOT / "docs" / "internals" / "cures.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| 80 ms a write | none |"))
    least = row.split("|")[4].split()[0]
    for page in ("README.md", "docs/placement/quarantine.md"):
        assert f"`acks=all` lost {least} of 40 s" in " ".join((ROOT / page).read_text().split()), page
    assert ACKS_ALL_FIGURES.endswith(f": {least} of 40 s lost")
