"""Addresses of pages of the documentation: everything that links to one asks here.

In: a page by its path below ``docs/``, such as ``runbook.md#stop-everything``. Out: its address on the site that
``make docs`` builds. The command line's ``--docs-url`` and the chart's ``docsUrl`` name another site.
"""

from __future__ import annotations

import os

HOME = "https://bellwether-kafka.github.io/bellwether/latest/"
"""Where the repository publishes its documentation: the newest release."""

VARIABLE = "BELLWETHER_DOCS_URL"


def page(path: str) -> str:
    """Address of a page: ``alerts/README.md`` -> ``.../alerts/``, ``runbook.md#x`` -> ``.../runbook/#x``."""
    name, mark, section = path.partition("#")
    name = name.removesuffix(".md").removesuffix("README")
    folder = f"{name.rstrip('/')}/" if name else ""
    return (os.environ.get(VARIABLE) or HOME).rstrip("/") + f"/{folder}{mark}{section}"
