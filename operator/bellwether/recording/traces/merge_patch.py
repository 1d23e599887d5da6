"""JSON merge patch (RFC 7396): compute the difference of two documents, and apply it.

Called by the recorder (``difference``) and by replays (``patched``). Documents hold no null: in a patch
it means that a member is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Any
Document = Mapping[str, Json]


def difference(before: Document, after: Document) -> dict[str, Json]:
    """The patch that makes ``after`` of ``before``; empty when they are equal.

    Parts that are the very same object are not looked into, so a caller that keeps what did not change pays nothing.
    """
    patch: dict[str, Json] = {}
    if before is after:
        return patch
    for key, value in after.items():
        old = before.get(key)
        if old is value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            below = difference(old, value)
            if below:
                patch[key] = below
        elif old != value:
            patch[key] = value
    patch.update((key, None) for key in before if key not in after)
    return patch


def patched(before: Document, patch: Document) -> dict[str, Json]:
    """The document after a patch; parts that the patch does not name are shared with ``before``."""
    after = dict(before)
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, Mapping):
            old = after.get(key)
            after[key] = patched(old if isinstance(old, Mapping) else {}, value)
        else:
            after[key] = value
    return after
