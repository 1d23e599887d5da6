"""Which broker a label of Prometheus or of an alert names."""

from __future__ import annotations

import re

# The last number of a name. Not that of an address: 10.0.0.2, ip-10-0-0-2 and kafka-1:9092 name no broker.
_ADDRESS = r"(?:.*[^0-9])?(?:[0-9]{1,3}-){3}[0-9]{1,3}\Z"
_BROKER_ID = re.compile(rf"(?!{_ADDRESS})(?:.*[^0-9.:])?([0-9]{{1,10}})", re.DOTALL)
_LARGEST_ID = 2**31 - 1


def broker_id(text: str) -> int | None:
    """The broker that a label names: a number, or a name that ends in one; None when it names none."""
    match = _BROKER_ID.fullmatch(text)
    number = int(match[1]) if match else _LARGEST_ID + 1
    return number if number <= _LARGEST_ID else None
