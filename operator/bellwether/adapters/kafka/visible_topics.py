"""Prove that Metadata shows every topic to its user: compare it with what the brokers themselves hold.

Metadata leaves out the topics that its user may not describe, without an error. DescribeLogDirs (KIP-113) needs
Describe on Cluster alone, which reading reassignments needs as well, and lists every partition of a broker. Called by
``metadata_reader``: each broker is asked once before anything is moved, and again from time to time, one in a read.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from bellwether.adapters.kafka.brokers.log_dirs import describe_log_dirs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.ports.errors import BellwetherError, Transient

REPEATED_SECONDS = 600.0
"""How old a broker's answer may become. A topic that vanishes from Metadata is asked for by name at once."""
RETRIED_SECONDS = 60.0
"""The same for a broker that gave no answer."""
ANSWER_SECONDS = 0.5
"""How long one broker is waited for, whose disk may hang."""
READ_SECONDS = 1.0
"""How long one read of metadata may go on asking; the next one continues."""


class VisibleTopics:
    """What the brokers of one cluster hold, as far as they were asked."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self._asked: dict[int, float] = {}
        self._unanswered: dict[int, str] = {}

    def held(self, live: Collection[int]) -> frozenset[str]:
        """Topics on the brokers that are due, by their own answers."""
        began, found = time.monotonic(), set[str]()
        for broker in self._due(live, began):
            if time.monotonic() - began >= READ_SECONDS:
                break
            self._unanswered.pop(broker, None)
            try:
                if self._nodes.silent_lately(broker):
                    raise Transient(f"broker {broker} gave no answer lately")
                placement = self._nodes.read_from(broker, describe_log_dirs, Deadline(ANSWER_SECONDS))
                found.update(name.topic for names in placement.values() for name in names)
            except BellwetherError as error:
                self._unanswered[broker] = str(error)
            self._asked[broker] = time.monotonic()
        return frozenset(found)

    def problem(self, live: Collection[int]) -> str:
        """Why it is not known whether Metadata is whole; empty once all live brokers were asked and one answered.

        One is enough where the others are silent: a fault must not keep a new process from moving leaders.
        """
        asked = self._asked.keys() & live
        if not asked.union(self._nodes.avoided).issuperset(live) or (live and not asked):
            known = f"{len(asked)} of {len(live)} brokers were asked"
            return f"whether Metadata shows all topics is not proven yet: {known}"
        if asked and asked <= self._unanswered.keys():
            why = self._unanswered[min(asked)]
            return f"whether Metadata shows all topics cannot be proven, as no broker lists its partitions: {why}"
        return ""

    def _due(self, live: Collection[int], now: float) -> list[int]:
        """All that were never asked; else one: first those to avoid, which delay no first order, then the oldest."""
        if new := sorted(set(live) - self._asked.keys() - self._nodes.avoided):
            return new
        at = {b: self._asked.get(b, -REPEATED_SECONDS) for b in sorted(live)}
        ages = {b: RETRIED_SECONDS if b in self._unanswered else REPEATED_SECONDS for b in live}
        return sorted((b for b in at if now - at[b] >= ages[b]), key=at.__getitem__)[:1]
