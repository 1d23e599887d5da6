"""State of a trace after some of its instants: apply a patch and check the result.

In: the state so far and an instant's news. Out: the state after it, whose members have the shapes that their readers
count on; what is in them is the readers' to check. Called by ``simulation.replay_run``. Raises ``UnreadableTrace``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bellwether.recording.traces.merge_patch import Document, Json, patched
from bellwether.recording.traces.trace_lines import UnreadableTrace

_BY_BROKER = frozenset({"signals", "overrides", "pods", "demoted", "returning", "said", "followers"})
_BROKER = re.compile("[0-9]{1,10}")


def following(state: Document, news: Document) -> dict[str, Json]:
    """The state after an instant. Unknown members are kept and ignored: a later version may use them."""
    try:
        after = patched(state, news)
    except RecursionError:
        raise UnreadableTrace("an instant of the trace is nested too deeply") from None
    for name in news:
        if name in after:
            _check(name, after[name])
    return after


def _check(name: str, member: Any) -> None:
    if not isinstance(member, Mapping):
        raise UnreadableTrace(f"member {name!r} of the trace's state is not an object")
    if name not in _BY_BROKER:
        return
    for broker, row in member.items():
        if _BROKER.fullmatch(broker) is None or not isinstance(row, Mapping):
            raise UnreadableTrace(f"member {name!r} of the trace's state must be an object with broker ids as keys")
        if name == "said" and not all(isinstance(row.get(k, {}), Mapping) for k in ("verdict", "demoted", "flapping")):
            raise UnreadableTrace(f"the status of broker {broker} in the trace is damaged")
