"""Brokers that are warm, and show alike what they lead: where a measurement begins.

In: a cluster that runs, its topics. Called by this bench and by ``faults`` before they measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bellwether.core.model.cluster import TopicPartition
from evacuation.contenders import Floor
from waiting import until

if TYPE_CHECKING:
    from testkit.kafka.kafka_site import KafkaSite

Shown = dict[TopicPartition, tuple[int | None, tuple[int, ...], int]]
"""Leader, replicas and leader epoch of each partition, as one broker shows them."""


def warm_up(site: KafkaSite, topics: Sequence[str], settle: Callable[[], None]) -> None:
    """Move the leaders of each broker away and back by bare requests, each time until every broker shows it.

    A broker that has just started takes several seconds for its first thousand, from any client; while it creates the
    logs of new partitions it shows no later change.
    """
    brokers = site.kafka.brokers
    floor = Floor(site.kafka.bootstrap.split(","), topics)

    def leaders(one: int) -> set[int | None]:
        return {p.leader for p in site.shown_by(one).partitions if p.topic in topics}

    for broker in brokers:
        floor.evacuate(broker)
        until(
            lambda b=broker: not any(b in leaders(one) for one in brokers),  # type: ignore[misc]
            120,
            f"all brokers show that broker {broker} leads nothing",
            every=0.1,
        )
        floor.give_back(broker)
        settle()


def settling(site: KafkaSite) -> Callable[[], None]:
    """Wait until every broker shows the orders of now again, led by their first replicas, with full ISRs.

    A busy broker may have left an ISR meanwhile, and may show for seconds what was before.
    """
    site.restore_leaders()
    orders = {p.name: p.replicas for p in site.reader.read().partitions}

    def shown() -> list[Shown]:
        clusters = [site.shown_by(broker) for broker in site.kafka.brokers]
        return [{p.name: (p.leader, p.replicas, p.leader_epoch) for p in one.partitions} for one in clusters]

    def alike(found: list[Shown]) -> bool:
        first = found[0]
        restored = {name: order for name, (leader, order, _) in first.items() if leader == order[0]} == orders
        return restored and all(one == first for one in found)

    def settle() -> None:
        site.restore_leaders()
        # Epochs tell the leaders of now from those before the last turn, which were the same brokers.
        until(shown, 120, "all brokers show the same leaders in the same epochs", so=alike, every=0.1)

    return settle
