"""Prove that Metadata shows every topic to its user: compare it with what the brokers themselves hold.

Metadata leaves out the topics that its user may not describe, without an error. DescribeLogDirs (KIP-113) needs
Describe on Cluster alone, which reading reassignments needs as well, and lists every partition of a broker. Called by
``metadata_reader``: each broker is asked once before anything is moved, and again from time to time, one in a read.
Threads of their own ask, so that a broker whose disk hangs, or a long way to it, delays no read for longer than agreed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable
from threading import Thread

from bellwether.adapters.kafka.brokers.log_dirs import describe_log_dirs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool

REPEATED_SECONDS = 600.0
"""How old a broker's answer may become. A topic that vanishes from Metadata is asked for by name at once."""
RETRIED_SECONDS = 60.0
"""The same for a broker that gave no answer."""
ANSWER_SECONDS = 5.0
"""How long a broker may take for its answer once it is connected: it looks through all of its logs."""
AT_ONCE = 16
"""So many brokers are asked at a time."""


class VisibleTopics:
    """What the brokers of one cluster hold, as far as they were asked."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self._asking: set[int] = set()
        self._answers: deque[tuple[int, frozenset[str] | Exception]] = deque()
        self._asked: dict[int, float] = {}
        self._unanswered: dict[int, str] = {}

    def held(self, live: Collection[int]) -> frozenset[str]:
        """Topics on brokers, by the answers that came since the last read. Those that are late count in the next."""
        limits, began, found = self._nodes.limits, time.monotonic(), set[str]()
        new = set(live) - self._asked.keys() - self._nodes.avoided
        due = sorted((new or self._due(live, began)) - self._asking)
        self._asking.update(due)
        brokers = iter(due)
        threads = [Thread(target=self._ask, args=(brokers,), daemon=True) for _ in due[:AT_ONCE]]
        for thread in threads:
            thread.start()
        over = began + (limits.proof_seconds if new else limits.next_seconds)
        for thread in threads:
            thread.join(max(0.0, over - time.monotonic()))
        while self._answers:
            broker, answer = self._answers.popleft()
            self._asking.discard(broker)
            self._asked[broker] = time.monotonic()
            self._unanswered.pop(broker, None)
            if isinstance(answer, Exception):
                self._unanswered[broker] = str(answer)
            else:
                found |= answer
        return frozenset(found)

    def problem(self, live: Collection[int]) -> str:
        """Why it is not known whether Metadata is whole; empty once all live brokers were asked and enough answered.

        Half of them are enough: a fault must not keep a new process from moving leaders.
        """
        asked = self._asked.keys() & live
        if self.pending(live):
            known = f"{len(asked)} of {len(live)} brokers were asked"
            return f"whether Metadata shows all topics is not proven yet: {known}"
        silent = asked & self._unanswered.keys()
        answered = len(asked - silent)
        if silent and (not answered or len(silent - self._nodes.avoided) > answered):
            why = f"{len(silent)} of {len(asked)} brokers do not list their partitions: {self._unanswered[min(silent)]}"
            return f"whether Metadata shows all topics cannot be proven, as {why}"
        return ""

    def pending(self, live: Collection[int]) -> bool:
        """Whether brokers are still to be asked before anything is proven."""
        asked = self._asked.keys() & live
        return not asked.union(self._nodes.avoided).issuperset(live) or bool(live and not asked)

    def _ask(self, brokers: Iterable[int]) -> None:
        """Take one broker after another of those that other threads take as well."""
        for broker in brokers:
            answer: frozenset[str] | Exception
            try:
                placement = self._nodes.look_at(broker, describe_log_dirs, ANSWER_SECONDS)
                answer = frozenset(name.topic for names in placement.values() for name in names)
            except Exception as error:  # whatever it is: this broker is not waited for
                answer = error
            self._answers.append((broker, answer))

    def _due(self, live: Collection[int], now: float) -> set[int]:
        """Of those that were asked or are to be avoided, one whose turn it is: the latter first, then the oldest."""
        at = {b: self._asked.get(b, -REPEATED_SECONDS) for b in sorted(live)}
        ages = {b: RETRIED_SECONDS if b in self._unanswered else REPEATED_SECONDS for b in live}
        return set(sorted((b for b in at if now - at[b] >= ages[b]), key=at.__getitem__)[:1])
