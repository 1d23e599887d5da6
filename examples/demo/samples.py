"""One measured record: what a client asked for, when, and when it was done.

Made in the traffic process (``generator``), sent to the demo as one line each, read back by ``traffic``. Times are
``time.monotonic()``, which all processes of one Linux machine share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import StrEnum

SLOW_SECONDS = 1.0
"""What takes longer counts as late."""


class Kind(StrEnum):
    """What was measured; each is reported apart."""

    ACKS_1 = "acks=1"
    ACKS_ALL = "acks=all"
    FETCH = "fetch"
    END_TO_END = "end to end"


@dataclass(frozen=True, slots=True)
class Sample:
    """One record. ``due`` is when it should have been sent (open loop), ``done`` when it was acknowledged or given up.

    ``error`` is empty on success, else the client's word for the failure. ``sequence`` is unique within a kind.
    """

    kind: Kind
    topic: str
    partition: int
    sequence: int
    due: float
    done: float
    error: str = ""

    @property
    def seconds(self) -> float:
        """How long it took, or, for a failure, how long the client waited."""
        return self.done - self.due

    def to_line(self) -> str:
        """The sample as one line of text."""
        return json.dumps(astuple(self), separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Sample:
        """The sample that ``to_line`` wrote. Raises ValueError when the line is no sample."""
        values = json.loads(line)
        if not isinstance(values, list) or len(values) != 7:
            raise ValueError(f"not a sample: {line!r}")
        kind, topic, partition, sequence, due, done, error = values
        return cls(Kind(kind), str(topic), int(partition), int(sequence), float(due), float(done), str(error))


def late(
    samples: Iterable[Sample], kind: Kind, per_second: float, now: float, patience: float = SLOW_SECONDS
) -> list[Sample]:
    """The produced records that were due more than ``patience`` seconds ago and are not finished yet, as done ``now``.

    Sequences have no gaps and a fixed rate, so what is missing is known without asking the client. The partition is
    unknown, -1.
    """
    finished = {s.sequence: s.due for s in samples if s.kind is kind}
    if not finished:
        return []
    sequence, due = next(iter(finished.items()))
    started = due - sequence / per_second
    expected = range(int((now - patience - started) * per_second) + 1)
    return [
        Sample(kind, "", -1, number, started + number / per_second, now)
        for number in expected
        if number not in finished
    ]


def key_of(kind: Kind, sequence: int) -> bytes:
    """The key that a produced record carries, by which it is found again at the end."""
    return f"{kind.value}:{sequence}".encode()
