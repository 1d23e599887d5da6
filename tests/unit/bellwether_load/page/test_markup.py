from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.page.markup import Markup, join, tag, text


def test_elements_are_closed_and_attributes_quoted() -> None:
    assert tag("p", "a ", tag("b", 3), class_="x", data_of="y", id=None) == '<p class="x" data-of="y">a <b>3</b></p>'
    assert tag("rect", x=1, y=2.5) == '<rect x="1" y="2.5"/>'
    assert tag("td", "") == "<td></td>"
    assert join("a", None, 1) == "a1"


def test_what_is_not_marked_up_is_escaped() -> None:
    assert tag("td", "<script>alert('x')</script>&\"") == (
        "<td>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;</td>"
    )
    assert tag("td", "x", title='"><b onclick="') == '<td title="&quot;&gt;&lt;b onclick=&quot;">x</td>'
    assert text(Markup("<b>")) == "<b>"


def test_what_turns_text_around_or_cannot_be_shown_is_replaced() -> None:
    assert text("a\u202eb\x00c\x1bd\u200be") == "a?b?c?d?e"
    assert text("two\nlines") == "two\nlines"


@given(st.text(), st.text())
def test_any_text_comes_back_from_any_place_and_adds_no_element(inside: str, attribute: str) -> None:
    root = ElementTree.fromstring(tag("p", inside, title=attribute))  # noqa: S314 - our own
    shown = "".join(c if c.isprintable() or c == "\n" else "?" for c in inside)
    assert (list(root), root.text or "") == ([], shown)
    assert set(root.attrib) == {"title"}
