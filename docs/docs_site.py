"""What ``make docs`` adds to the Markdown: pages from elsewhere in the tree, links out of ``docs/``, anchors of rows.

Loaded by ``mkdocs.yml``, as hooks and as an extension of Markdown. A row of a table whose first cell begins with code
has that as its anchor, else each code of it: each field, metric, reason, alert and command has an address.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "reference/chart-values.md": "helm/bellwether/README.md",
}
"""Page of the site -> file of the tree."""
DECISIONS = "decisions/README.md"
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
PLACES = {f"docs/{page}": page for page in (DECISIONS,)} | {file: page for page, file in ELSEWHERE.items()}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie elsewhere, and a list of decisions."""
    for page, file in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / file).read_text()))
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"), reverse=True)
    titles = (f"- [{one.read_text().splitlines()[0].removeprefix('# ')}]({one.name})\n" for one in records)
    files.append(File.generated(config, DECISIONS, content="# Decisions\n\n" + "".join(titles)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Let links to files that are no pages lead to the repository."""
    here = page.file.src_uri
    source = ELSEWHERE.get(here, f"docs/{here}")

    def lead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        if target == "docs/decisions":
            target = f"docs/{DECISIONS}"
        found = PLACES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if found is None:
            return f"]({config.repo_url}/blob/main/{target}{link[2] or ''})"
        return f"]({posixpath.relpath(found, posixpath.dirname(here) or '.')}{link[2] or ''})"

    return LINK.sub(lead, markdown)


class RowAnchors(Treeprocessor):
    """Give rows the code in their first cell as id, and cells their heading, which phones show."""

    def run(self, root: Any) -> None:
        """Change the tree of a page."""
        for table in root.iter("table"):
            headings = ["".join(cell.itertext()) for cell in table.iter("th")]
            for row in table.iter("tr"):
                for heading, cell in zip(headings, row.findall("td"), strict=False):
                    cell.set("data-heading", heading)
        known: set[str] = set()
        for row in root.iter("tr"):
            cell = row.find("td")
            code = next(cell.iter("code"), None) if cell is not None else None
            if code is not None and code.text and not (cell.text or "").strip() and code.text not in known:
                known.add(code.text)
                cell.set("id", code.text.replace(" ", "-"))
            elif cell is not None and code is None:
                for other in row.iter("code"):
                    if (word := (other.text or "").split(" ")[0]) and word not in known:
                        known.add(word)
                        other.set("id", word)


class SiteExtension(Extension):
    """Adds ``RowAnchors``."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        """Run after inline patterns and before the addresses of a page are collected."""
        md.treeprocessors.register(RowAnchors(md), "row-anchors", 6)


def makeExtension(**_: Any) -> SiteExtension:  # noqa: N802 - Markdown's name
    """Markdown's entry point."""
    return SiteExtension()
