from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rich.text import Text

from demo.health import Words
from demo.picture import EVERY_SECONDS, Picture
from demo.table import Scene

NAME = "{http://www.w3.org/2000/svg}"


def scene(elapsed: float) -> Scene:
    return Scene("step 1 of 7", elapsed, Words(), {1: 333, 2: 333}, {})


def texts(file: Path) -> list[list[str]]:
    root = ElementTree.fromstring(file.read_text())  # noqa: S314 - written by the test
    return [[text.text or "" for text in frame] for frame in root.iter(f"{NAME}g")]


def test_frames_have_the_table_below_the_last_sentences(tmp_path: Path) -> None:
    picture = Picture()
    for line in range(60):
        picture.console.print(Text(f"sentence {line} with <b>"))
    picture.after(scene(0))
    picture.save(tmp_path / "demo.svg")
    first, last = texts(tmp_path / "demo.svg")
    assert "333" in " ".join(first)
    assert "sentence 59 with <b>" in first
    assert last[-1] == "sentence 59 with <b>"
    assert "sentence 0 with <b>" not in last


def test_scenes_between_two_frames_are_left_out(tmp_path: Path) -> None:
    picture = Picture()
    for elapsed in (0.0, 0.5, EVERY_SECONDS, EVERY_SECONDS + 0.5):
        assert picture.after(scene(elapsed)) == scene(elapsed)
    picture.save(tmp_path / "demo.svg")
    assert len(texts(tmp_path / "demo.svg")) == 3
