"""Whatever a file makes of a trace, a replay plays it or says what is wrong; it never breaks."""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bellwether.cli.main import main
from bellwether.ports.errors import BellwetherError
from bellwether.recording.trace_files import TraceReader
from bellwether.recording.traces.trace_lines import Header, Instant, UnreadableTrace
from bellwether.simulation.replay_run import Replay
from sourcetree import ROOT

TRACE = ROOT / "tests" / "scenarios" / "traces" / "cut-and-slow-disk.jsonl"
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "1,2", "9" * 5000, "2026-11-21T09:00:00Z", "Demoted", "\x1b[2J"]),
    st.just([]),
    st.just({}),
    st.dictionaries(st.sampled_from(["1", "x", "verdict", "brokers"]), st.integers() | st.just({}), max_size=2),
)


@cache
def real() -> tuple[Header, list[Instant]]:
    reader = TraceReader(TRACE)
    return reader.header, list(reader.instants())[:14]


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every member of a document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += places(below, (*path, key))
    return found


@given(st.data())
def test_a_trace_that_was_tampered_with_is_played_or_refused(data: st.DataObject):
    header, instants = real()
    changed = [Instant(i.at, i.wall, copy.deepcopy(i.news)) for i in instants]
    for _ in range(data.draw(st.integers(1, 3))):
        instant = data.draw(st.sampled_from(changed))
        all_places = places(instant.news)
        if not all_places:
            continue
        *way, last = data.draw(st.sampled_from(all_places))
        parent: Any = instant.news
        for step in way:
            parent = parent[step]
        parent[last] = data.draw(JUNK)
    with suppress(BellwetherError, UnreadableTrace):
        Replay(header).play(changed)


def test_a_strangers_trace_sends_no_codes_to_the_terminal(tmp_path: Path):
    text = TRACE.read_text().replace("median 82 ms", "\\u001b[2Jmedian\\n82 ms")
    assert "\\u001b" in text
    (tmp_path / "x.jsonl").write_text(text)
    found = CliRunner().invoke(main, ["replay", str(tmp_path / "x.jsonl")])
    assert ("\x1b" in found.output, "?[2Jmedian?82 ms" in found.output) == (False, True)
