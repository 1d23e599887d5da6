"""``bellwether drain``: move leadership away from a broker before a restart, and back afterwards.

In: a policy's name and a broker id. Out: an override with purpose Maintenance on the BrokerHealth, progress messages,
and an exit status for scripts. The operator moves the leaders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.cli import completion, exit_status
from bellwether.cli.kubernetes_target import Target, broker_id, connect_policy, policy_options
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.cli.leadership.broker_lookup import NamedPolicy
from bellwether.cli.leadership.demote import preview_overrides
from bellwether.cli.option_lists import duration
from bellwether.core.demotion.drain_check import StopCheck, stop_check
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override, OverrideState, Purpose
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.cli.planning.policy_inputs import PolicyInputs

ANSWER_SECONDS = 20.0
"""Without ``--wait``: time limit for the operator's first response."""

UNDER_WAY = frozenset({str(Reason.LEADERS_MOVING), str(Reason.LEADS_NOTHING)})


@dataclass(frozen=True)
class DrainProgress:
    """Progress of a drain: the condition ``Drained``, else ``Demoted`` (None: not set yet)."""

    drained: bool | None
    demoted: bool | None
    reason: str
    message: str
    current: bool
    """Whether the status was written for the present override."""

    @property
    def held(self) -> bool:
        """Whether the operator blocks the drain at present."""
        return self.current and self.drained is False and self.reason not in UNDER_WAY

    @property
    def leads(self) -> bool:
        """Whether the maintenance is over and no restoration wave is pending."""
        returning = self.reason == Reason.RESTORING_IN_WAVES
        return self.current and self.drained is None and self.demoted is False and not returning


@click.command()
@click.argument("broker", type=broker_id, shell_complete=completion.brokers)
@policy_options
@click.option("--end", is_flag=True, help="End the maintenance; the broker leads again once it is healthy.")
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    type=duration,
    default="30m",
    show_default=True,
    help="End the maintenance after 30m, 2h, 1d at the latest.",
)
@click.option(
    "--wait", is_flag=True, help="Wait until it is safe to stop the broker; with --end: until it leads again."
)
@click.option(
    "--timeout",
    metavar="TIME",
    type=duration,
    default="5m",
    show_default=True,
    help="Time limit of --wait: 30s, 5m, 1h.",
)
@click.option(
    "--accept-unavailable-writes",
    is_flag=True,
    help="Also report the broker as drained if Kafka would refuse acks=all writes without it (min.insync.replicas).",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would move and whether it would be safe to stop the broker; change nothing.",
)
@click.option("--reason", default="", help="Reason, recorded in status and in the audit log.")
def drain(broker: int, target: Target, **options: Any) -> None:
    """Move leadership away from BROKER before a restart.

    Starts a maintenance: until it ends (with --end, or after --for) the broker's signals demote no broker. Exit status
    3, with the reason, if the operator blocks the drain, because partitions would have no leader or refuse acks=all
    writes without the broker, or if it is not finished in time.
    `kubectl wait --for=condition=Drained bh/POLICY-BROKER` waits for the same.
    """
    limit, until = options["timeout"], SystemClock().now() + options["duration"]
    if not options["duration"]:
        raise click.UsageError("--for must be longer than 0, such as 30m")
    at = connect_policy(target)
    if options["dry_run"]:
        broker_lookup.find_health(*at, broker)
    if options["end"]:
        if options["dry_run"]:
            preview_overrides(target, {broker: None})
        else:
            _end(at, broker, limit if options["wait"] else None)
        return
    maintenance = Override(
        broker,
        OverrideState.DEMOTED,
        options["reason"] or "bellwether drain",
        until,
        overrides.whoami(),
        Purpose.MAINTENANCE,
        accept_unavailable_writes=bool(options["accept_unavailable_writes"]),
    )
    if options["dry_run"]:
        _preview(target, maintenance)
    else:
        _begin(at, maintenance)
        click.echo(f"broker {broker} is in maintenance until {until.isoformat(timespec='seconds')}")
        _await(at, broker, limit, to_the_end=options["wait"])


def _preview(target: Target, override: Override) -> None:
    """Print the plan under a maintenance, and whether it is safe to stop the broker; exit status ``BLOCKED`` if not.

    Raises what reading the policy and its cluster raises.
    """
    from bellwether.cli.planning.plan import show_plan
    from bellwether.cli.planning.policy_inputs import policy_inputs

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


def _begin(at: NamedPolicy, maintenance: Override) -> None:
    broker = maintenance.broker
    present = _override(at, broker)
    if present is not None and not overrides.ended(present, SystemClock().now()) and not _maintains(present):
        raise Terminal(
            f"broker {broker} already has an override {present.get('state')} ({present.get('reason')}): remove it "
            f"first with bellwether release {broker} --policy {at.name} -n {at.namespace}"
        )
    overrides.set_override(at, broker, maintenance)


def _end(at: NamedPolicy, broker: int, limit: timedelta | None) -> None:
    present = _override(at, broker)
    if present is not None and not _maintains(present):
        raise Terminal(
            f"broker {broker} is not in maintenance: its override {present.get('state')} ({present.get('reason')}) "
            f"has another purpose; remove it with bellwether release {broker} --policy {at.name} -n {at.namespace}"
        )
    if present is None:
        click.echo(f"broker {broker} is not in maintenance")
    else:
        overrides.set_override(at, broker, None)
        click.echo(f"broker {broker}: maintenance ended; it leads again once it is healthy")
    if limit is None:
        return
    last = _poll_until(at, broker, limit, lambda progress: progress.leads)
    if not last.leads:
        exit_status.blocked(
            f"broker {broker} does not lead again after {_seconds(limit)}: {last.message} ({last.reason})"
        )
    click.echo(f"broker {broker} is free to lead")


def _await(at: NamedPolicy, broker: int, limit: timedelta, *, to_the_end: bool) -> None:
    """Wait for the drain, or only for the operator's first response."""
    idle = overrides.without_effect(broker_lookup.find_policy(*at))
    if idle is not None:
        exit_status.blocked(f"not drained: {idle}")
    if not to_the_end:
        limit = min(limit, timedelta(seconds=ANSWER_SECONDS))
    name = object_names.broker_health(at.name, broker)
    later = f"to wait for its end: kubectl wait --for=condition=Drained bh/{name} -n {at.namespace}"

    def enough(progress: DrainProgress) -> bool:
        lasting = progress.held and progress.reason in _LASTING
        return progress.current and (
            bool(progress.drained) or lasting or (not to_the_end and progress.drained is not None)
        )

    last = _poll_until(at, broker, limit, enough)
    if last.drained and last.current:
        click.echo(f"broker {broker} is drained; {last.message}")
    elif last.held:
        undo = f"bellwether drain {broker} --policy {at.name} -n {at.namespace} --end"
        exit_status.blocked(
            f"blocked: {last.message} ({last.reason}); it continues by itself once possible; to cancel: {undo}"
        )
    elif to_the_end:
        problem = broker_lookup.trouble(broker_lookup.find_policy(*at)) or "the operator has not responded yet"
        exit_status.blocked(f"not drained within {_seconds(limit)}: {last.message if last.current else problem}")
    else:
        click.echo(f"the drain is in progress; {later}")


_LASTING = frozenset({str(Reason.ANOTHER_BROKER_UNHEALTHY), str(Reason.NOT_ENFORCING)})
"""Reasons of a blocked drain that do not end by waiting."""


def _poll_until(
    at: NamedPolicy, broker: int, limit: timedelta, enough: Callable[[DrainProgress], bool]
) -> DrainProgress:
    """Poll until ``enough`` or the time limit, and print every change. Returns the last progress."""
    last = DrainProgress(None, None, "", "", current=False)

    def read() -> tuple[str, DrainProgress | None]:
        nonlocal last
        last = look(at, broker)
        if enough(last):
            return "", last
        return f"{last.message} ({last.reason})" if last.reason and last.current else "", None

    wait.poll(read, limit.total_seconds())
    return last


def look(at: NamedPolicy, broker: int) -> DrainProgress:
    """Read the progress of a drain. Raises Transient, and Terminal if the broker is unknown."""
    body = broker_lookup.find_health(*at, broker)
    drained, demoted = broker_lookup.condition(body, "Drained"), broker_lookup.condition(body, "Demoted")
    condition = drained or demoted or {}
    seen = (body.get("status") or {}).get("observedGeneration")
    return DrainProgress(
        drained=None if drained is None else drained["status"] == "True",
        demoted=None if demoted is None else demoted["status"] == "True",
        reason=str(condition.get("reason", "")),
        message=str(condition.get("message", "")),
        current=seen is not None and seen >= int(body["metadata"].get("generation") or 0),
    )


def _override(at: NamedPolicy, broker: int) -> dict[str, Any] | None:
    return overrides.override_of(broker_lookup.find_health(*at, broker))


def _maintains(override: dict[str, Any]) -> bool:
    return override.get("purpose") == Purpose.MAINTENANCE


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"
