"""Text that another process wrote: what Kafka, the API server, Prometheus, a plug-in or a file say.

It goes to status, logs, terminals and pages: without control characters, so that it cannot steer a terminal or look
like another line, and inside messages of bounded length.
"""

from __future__ import annotations

QUOTED_CHARACTERS = 300
"""Of what another process said, inside a message of ours."""


def printable(said: object) -> str:
    """The text on one line, with ``?`` for each control character."""
    text = str(said)
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_lines(said: object) -> str:
    """The same with its line feeds."""
    return "\n".join(map(printable, str(said).split("\n")))


def quoted(said: object, most: int = QUOTED_CHARACTERS) -> str:
    """The beginning of a text of any length on one line, white space as single spaces; empty for what is no text."""
    if not isinstance(said, str):
        return ""
    line = printable(" ".join(said[: 2 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
