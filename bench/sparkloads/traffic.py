"""A made-up cluster's day: what is sent to each partition in each minute, and what a sampler would see of it.

In: a number of partitions and a seed. Out: samples as arrays, hour by hour, and the true rates. Rates are heavy-tailed
over partitions and swing over the day, minutes scatter around them, batches compress differently; logs are cut by
retention, leaders change and bring the size of another replica, and brokers do not answer for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIDNIGHT = 1_795_132_800  # 2026-11-20T00:00:00Z
MINUTES = 60
BROKERS = 60
# Partitions that are drawn together; a day of them fits a row group.
PART = 546
# Partitions whose true rates are kept, to compare with.
WITNESSES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a sampler saw: matrices with a row a partition and a column a minute; -1 is unanswered."""

    at: Ints
    leader: Ints
    epoch: Ints
    end: Ints
    size: Ints


class Cluster:
    """Partitions in order of topic and number, and the state of their logs as the day goes on."""

    def __init__(self, partitions: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        # Topics of one partition and of hundreds, as clusters have them.
        sizes = np.maximum(1, draw.lognormal(2.0, 1.2, partitions).astype(np.int64))
        ends = np.cumsum(sizes)
        topics = int(np.searchsorted(ends, partitions)) + 1
        sizes = sizes[:topics]
        sizes[-1] -= ends[topics - 1] - partitions
        self.topics = [f"flock.{number:06}.v1" for number in range(topics)]
        self.topic_ids = [_topic_id(draw) for _ in range(topics)]
        self.topic = np.repeat(np.arange(topics), sizes)
        self.partition = np.arange(partitions) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # Messages a second; topics differ more than the partitions of one.
        self._rate = np.minimum(draw.lognormal(0.5, 2.2, topics)[self.topic] * draw.lognormal(0, 0.4, partitions), 2e4)
        self._bytes = draw.lognormal(6.0, 0.8, topics)[self.topic]
        self._swing = draw.uniform(0, 0.8, topics)[self.topic]
        self._noon = draw.uniform(0, 2 * np.pi, topics)[self.topic]
        self._segment = draw.choice([1 << 24, 1 << 27, 1 << 30], partitions)
        self._keep = self._segment * draw.integers(2, 20, partitions)
        self._end = draw.integers(0, 1 << 36, partitions)
        self._size = (self._keep * draw.uniform(0.2, 1.0, partitions)).astype(np.int64)
        self._leader = draw.integers(1, BROKERS + 1, partitions)
        self._epoch = draw.integers(0, 200, partitions)
        self._seed = seed
        # Bytes/s of the first partitions, a matrix for each hour.
        self.true_bytes: list[Floats] = []

    def __len__(self) -> int:
        return len(self.topic)

    def parts(self) -> Iterator[slice]:
        """All partitions, some at a time: what is drawn depends on the hour and the part."""
        for first in range(0, len(self), PART):
            yield slice(first, min(first + PART, len(self)))

    def hour(self, number: int, rows: slice) -> Seen:
        """The next hour of a part: hours must be asked for in turn."""
        draw = np.random.default_rng((self._seed, number, rows.start))
        minutes = number * MINUTES + np.arange(MINUTES)
        count = rows.stop - rows.start
        shape = (count, MINUTES)
        wave = 1 + self._swing[rows, None] * np.sin(2 * np.pi * minutes / 1440 + self._noon[rows, None])
        mean = self._rate[rows, None] * 60 * wave * draw.gamma(100, 0.01, shape)
        messages = np.maximum(0, np.rint(mean + np.sqrt(mean) * draw.standard_normal(shape))).astype(np.int64)
        grown = np.rint(messages * self._bytes[rows, None] * draw.gamma(400, 1 / 400, shape)).astype(np.int64)
        if rows.start < WITNESSES:
            self.true_bytes.append(grown[: WITNESSES - rows.start] / 60)
        end = self._end[rows, None] + np.cumsum(messages, axis=1)
        size = self._kept(number, rows, np.cumsum(grown, axis=1))
        leader, epoch, size = self._led(rows, size, draw)
        self._end[rows], self._size[rows] = end[:, -1], size[:, -1]
        silent = self._silent(number)[leader, np.arange(MINUTES)]
        end, size = np.where(silent, -1, end), np.where(silent, -1, size)
        at = np.broadcast_to(MIDNIGHT + minutes * 60, shape)
        return Seen(at, leader, epoch, end, size)

    def _kept(self, number: int, rows: slice, grown: Ints) -> Ints:
        """Sizes after retention: every five minutes whole segments go until no more than is to be kept is left."""
        size = self._size[rows, None] + grown
        segment, keep = self._segment[rows], self._keep[rows]
        for minute in range(number % 5, MINUTES, 5):
            over = np.maximum(0, size[:, minute] - keep)
            size[:, minute:] -= (-(-over // segment) * segment * (over > 0))[:, None]
        kept: Ints = np.maximum(size, 0)
        return kept

    def _led(self, rows: slice, size: Ints, draw: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """Leaders: one partition in fifty changes it in this hour, for a replica whose log is of another size."""
        count = rows.stop - rows.start
        minute = np.where(draw.random(count) < 0.02, draw.integers(0, MINUTES, count), MINUTES)
        after = np.arange(MINUTES) >= minute[:, None]
        other = draw.uniform(-0.3, 0.3, count) * self._segment[rows]
        leader = np.where(after, self._leader[rows, None] % BROKERS + 1, self._leader[rows, None])
        epoch = self._epoch[rows, None] + after
        size = np.maximum(0, size + (after * other[:, None]).astype(np.int64))
        self._leader[rows], self._epoch[rows] = leader[:, -1], epoch[:, -1]
        return leader, epoch, size

    def _silent(self, number: int) -> NDArray[np.bool_]:
        """Per broker and minute, whether it did not answer: one hour in fifty, for up to a quarter of an hour."""
        draw = np.random.default_rng((self._seed, number, 1 << 40))
        start = np.where(draw.random(BROKERS + 1) < 0.02, draw.integers(0, MINUTES, BROKERS + 1), MINUTES)
        length = draw.integers(1, 16, BROKERS + 1)
        minute = np.arange(MINUTES)
        return (minute >= start[:, None]) & (minute < (start + length)[:, None])


def _topic_id(draw: np.random.Generator) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return "".join(letters[i] for i in draw.integers(0, 64, 21)) + letters[int(draw.integers(0, 4)) * 16]
