"""Dry run of ``bellwether drain``: what would move, and whether the broker could be stopped afterwards."""

from __future__ import annotations

from dataclasses import replace

import click

from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target
from bellwether.cli.planning.plan import show_plan
from bellwether.cli.planning.policy_inputs import PolicyInputs, policy_inputs
from bellwether.core.demotion.drain_check import StopCheck, stop_check
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.signals import Override


def preview_drain(target: Target, override: Override) -> None:
    """Print the plan under a maintenance, and whether it is safe to stop the broker; exit status ``BLOCKED`` if not.

    Raises what reading the policy and its cluster raises.
    """
    with policy_inputs(target) as inputs:
        preview = inputs.preview().with_overrides({override.broker: override})
        show_plan(preview, "table")
        snapshot = _with_floors(preview.context.snapshot, override.broker, inputs)
    blocked = preview.decisions.hold_of(override.broker)
    maintenance = snapshot.maintenance.get(override.broker)
    check = StopCheck(False, blocked.reason, blocked.message) if blocked is not None else None
    if check is None and maintenance is not None:
        check = stop_check(maintenance, preview.decisions.demoted, snapshot)
    if check is None:
        return
    click.echo(f"once broker {override.broker} leads nothing: {check.message} ({check.reason})")
    if not check.safe:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _with_floors(snapshot: Snapshot, broker: int, inputs: PolicyInputs) -> Snapshot:
    """The snapshot with ``min.insync.replicas`` of the topics on a broker and the quorum, which only a drain needs."""
    topics = {partition.topic for partition in snapshot.cluster.held_by(broker)}
    configs, margins = inputs.world.configs, inputs.world.margins
    found = configs.topic_configs(topics, [MIN_ISR]) if configs is not None and topics else {}
    floors = {topic: int(values[MIN_ISR]) for topic, values in found.items() if MIN_ISR in values}
    tolerance = margins.margins((), (), {}) if margins is not None else None
    return replace(snapshot, floors={**snapshot.floors, **floors}, fault_tolerance=tolerance)
