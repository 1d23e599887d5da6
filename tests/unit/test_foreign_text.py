"""Text of other processes is one line without control characters, and of bounded length."""

from __future__ import annotations

import pytest

from bellwether.foreign_text import printable, quoted
from bellwether.ports.errors import MOST_CHARACTERS, Terminal

HOSTILE = "\x1b]8;;http://elsewhere\x07a\x1b\\\u202eb\x00"


@pytest.mark.parametrize("clean", [printable, quoted, lambda text: str(Terminal(text))])
def test_control_characters_of_foreign_text_are_replaced(clean: object) -> None:
    assert callable(clean)
    assert clean(HOSTILE) == "?]8;;http://elsewhere?a?\\?b?"


def test_quoted_text_is_one_line_of_bounded_length() -> None:
    assert quoted("a\n b\t\r\nc") == "a b c"
    assert quoted("a" * 10_000_000) == "a" * 299 + "…"
    assert quoted("a" * 300) == "a" * 300
    assert quoted(None) == ""


def test_message_of_an_error_is_bounded() -> None:
    assert len(str(Terminal("a" * 7_000_000))) == MOST_CHARACTERS
