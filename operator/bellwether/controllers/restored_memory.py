"""Restore the memory of a policy's operator from the undo record and from what it last wrote to status.

Called by the operator after a take-over, and by commands that plan or forecast as it does.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.status.policy_status import HarmEpisodes, LeadershipPolicyStatus
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.undo_record import UndoRecord
from bellwether.gather import Memory


def restored_memory(record: UndoRecord, status: LeadershipPolicyStatus, healths: Iterable[BrokerHealth]) -> Memory:
    """The memory to continue with; a verdict whose reason is unknown is left out."""
    brokers = [(health.spec.broker_id, health.status) for health in healths]
    verdicts = ((b, one.verdict.verdict(b)) for b, one in brokers if one.verdict is not None)
    return Memory(
        record,
        {broker: verdict for broker, verdict in verdicts if verdict is not None},
        flaps={broker: one.flapping.to_core() for broker, one in brokers if one.flapping is not None},
        elections=status.move_cost.elections if status.move_cost is not None else (),
        harm_history=HarmEpisodes.to_core(status.harm_episodes),
        hosts=KnownHosts({broker: one.advertised_hosts for broker, one in brokers}),
    )
