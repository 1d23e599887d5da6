"""A broker's word on the ends of its logs, made up: what ``adapters.kafka.brokers.log_ends`` would have brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bellwether.core.model.cluster import TopicPartition


@dataclass(frozen=True)
class Word:
    """Ends with the times between which they held."""

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    sent: float = 0.0
    received: float = 0.0
    moved: int = 0
    problem: str = ""
