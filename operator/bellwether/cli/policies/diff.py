"""``bellwether diff``: what a change of policy files would do to the live clusters.

In: policy files, and what the operators of these policies know now. Out: changed settings, demotions and moves with the
current and with the changed policy, as table, JSON or YAML. Nothing is written: the reconcile runs on a copy in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient
from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target, connect, namespaced
from bellwether.cli.option_lists import duration
from bellwether.cli.output import OUTPUT, lasting, picked, print_lines, rows_of
from bellwether.core.signals import Override
from bellwether.ports.errors import BellwetherError, Terminal

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.cli.planning.policy_inputs import PolicyInputs
    from bellwether.cli.policies.policy_files import CheckedFiles
    from bellwether.simulation.forecast import Forecast, Situation

SHOWN_CHANGES = 20
LISTEN_SECONDS = 10.0
"""For so long at most it waits for every prober to renew its Lease: until then the age of its signals is unknown."""


@dataclass(frozen=True)
class PolicyDiff:
    """One policy: changed settings, and what happens with the current policy (None: it does not exist) and with the
    changed one.
    """

    namespace: str
    name: str
    fields: tuple[tuple[str, Any, Any], ...]
    notes: tuple[str, ...]
    situation: Situation
    current: Forecast | None
    changed: Forecast

    @property
    def differs(self) -> bool:
        """Whether other leaders move, or other brokers are demoted."""
        if self.current is None:
            return bool(self.changed.changes or self.changed.demoted)
        return _result(self.current) != _result(self.changed)


@click.command()
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File or folder with policies, or - for the standard input; repeatable.",
)
@namespaced
@click.option(
    "--for",
    "lookahead",
    metavar="TIME",
    type=duration,
    default="10m",
    show_default=True,
    help="Time to look ahead, such as 90s, 10m, 1h.",
)
@OUTPUT
def diff(files: tuple[str, ...], target: Target, lookahead: timedelta, output: str) -> None:
    """Show what policies in files would do to the cluster.

    Run it before the files are applied. For each LeadershipPolicy in them: which settings change, which brokers would
    be demoted and which leaders would move, with the current policy and with the changed one. Overrides of
    BrokerHealths in the files are included.
    It reads metadata, signals, status and undo record with the rights of the user, and runs the operator's reconcile
    on a copy in memory: nothing is written. The signals are assumed to stay as they are. Quarantine, the execution of
    load plans, and Kafka's own leader balancing are not part of the forecast.

    \b
    Exit status:
      0  no other demotions or moves than with the current policies
      1  the files have errors, or a cluster could not be read
      4  other demotions or moves
    """
    from bellwether.simulation.forecast import NoReport

    seconds = lookahead.total_seconds()
    checked = _read(files)
    try:
        api, namespace = connect(target)
        found = [_of(api, one.policy, checked, namespace, seconds) for one in checked.policies]
    except (BellwetherError, NoReport) as error:
        raise click.ClickException(str(error)) from None
    lines = (line for one in found for line in _text(one, lookahead))
    print_lines(lines, lambda: [_document(one, seconds) for one in found], output)
    if any(one.differs for one in found):
        raise click.exceptions.Exit(exit_status.FOUND)


def _read(files: Sequence[str]) -> CheckedFiles:
    """The objects of the files, which must be free of errors."""
    from bellwether.cli.policies.policy_files import check_files

    checked = check_files(files)
    if checked.errors:
        raise click.ClickException(f"the files have errors:\n{checked.table(checked.errors)}")
    if not checked.policies:
        raise click.ClickException(f"no LeadershipPolicy in {', '.join(files)}: name files that have one")
    return checked


def _of(
    api: KubernetesClient,
    policy: LeadershipPolicy,
    checked: CheckedFiles,
    default_namespace: str,
    seconds: float,
) -> PolicyDiff:
    from bellwether.adapters.kubernetes.objects.leader_rebalances import with_rebalances
    from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.cli.planning.policy_inputs import open_policy
    from bellwether.cli.policies.policy_files import in_namespace
    from bellwether.simulation.forecast import forecast

    written = "namespace" in policy.metadata.model_fields_set
    namespace, name = policy.metadata.namespace if written else default_namespace, policy.metadata.name
    body = api.find(POLICIES, namespace, name)
    live = with_sources(api, LeadershipPolicy.read(body), namespace) if body is not None else None
    policy = with_sources(api, policy, namespace, in_namespace(checked.sources, namespace))
    if live is not None:
        live = with_rebalances(api, live, namespace)
    policy = with_rebalances(api, policy, namespace, in_namespace(checked.rebalances, namespace))
    # Status and its memory belong to the live policy, the connection and the rest to the changed one.
    wanted = policy.model_copy(update={"status": live.status}) if live is not None else policy
    with open_policy(api, wanted, namespace, SystemClock(), LISTEN_SECONDS) as opened:
        situation = _situation(opened, namespace)
        if live is None:
            _refuse_second(api, namespace, situation.cluster.cluster_id)
        overridden = _with_overrides(situation, checked.healths, name)
        return PolicyDiff(
            namespace,
            name,
            tuple(_changed_fields(_settings(live), _settings(policy))),
            opened.notes,
            situation,
            forecast(situation, live.policy(), seconds) if live is not None else None,
            forecast(overridden, policy.policy(), seconds),
        )


def _situation(opened: PolicyInputs, namespace: str) -> Situation:
    """What the policy's operator knows now. Raises what reading raises, and Terminal for another Kafka cluster."""
    from bellwether.simulation.forecast import Situation

    world, name, pinned = opened.world, opened.policy.metadata.name, opened.policy.status.cluster_id
    cluster = world.clusters.read()
    memory = opened.memory(cluster.cluster_id)
    for known in (pinned, memory.record.cluster_id):
        if known and known != cluster.cluster_id:
            raise Terminal(
                f"the addresses lead to Kafka cluster {cluster.cluster_id}, and policy {namespace}/{name} is pinned"
                f" to {known}, as is its undo record: correct spec.kafka, or make another policy"
            )
    return Situation(
        world.clock.now(),
        cluster,
        memory,
        world.signals.signals(),
        world.signals.overrides(),
        world,
        world.pods(memory.hosts.seen(cluster).hosts) if world.pods is not None else None,
    )


def _refuse_second(api: KubernetesClient, namespace: str, cluster_id: str) -> None:
    """Raise Terminal if a policy of this namespace manages the Kafka cluster of a new one."""
    for body in api.list(POLICIES, namespace):
        if (body.get("status") or {}).get("clusterId") == cluster_id:
            raise Terminal(
                f"policy {namespace}/{body['metadata']['name']} manages Kafka cluster {cluster_id} already, and the"
                " operator refuses a second one: change that policy, or delete it first"
            )


def _with_overrides(situation: Situation, healths: Sequence[BrokerHealth], policy: str) -> Situation:
    """The situation with the overrides that the files set."""
    mine = {h.spec.broker_id: h.override_() for h in healths if h.spec.policy_ref.name == policy}
    kept: dict[int, Override] = {o.broker: o for o in situation.overrides if o.broker not in mine}
    kept |= {broker: override for broker, override in mine.items() if override is not None}
    return replace(situation, overrides=tuple(kept[broker] for broker in sorted(kept)))


def _result(outcome: Forecast) -> tuple[frozenset[int], list[tuple[str, tuple[int, ...], int | None]]]:
    return outcome.demoted, sorted((str(p.name), p.replicas, p.leader) for p in outcome.cluster.partitions)


def _text(one: PolicyDiff, lookahead: timedelta) -> Iterator[str]:
    changes = "1 setting changes" if len(one.fields) == 1 else f"{len(one.fields)} settings change"
    yield f"policy {one.namespace}/{one.name}: {'new' if one.current is None else changes}"
    if one.current is not None:
        for field, before, after in one.fields:
            yield f"  {field}: {_shown(before)} -> {_shown(after)}"
    yield from (f"  note: {note}" for note in one.notes)
    yield f"if the signals stay as they are, within {lasting(lookahead)}:"
    if one.current is not None:
        yield "  with the current policy:"
        yield from _happenings(one.current)
        yield "  with the changed policy:"
    yield from _happenings(one.changed)
    heads = ("broker", "leaders now", *(("current policy",) if one.current is not None else ()), "changed policy")
    rows = [tuple(map(str, row.values())) for row in _leaders(one)]
    yield from (f"  {line}" for line in rows_of(heads, rows))


def _happenings(outcome: Forecast) -> Iterator[str]:
    rows = [row for row in outcome.rows if row.what not in ("verdict", "holds back")]
    yield from (f"    {row}" for row in rows)
    for change in outcome.changes[:SHOWN_CHANGES]:
        leader = f", leader {change.leader_before} -> {change.leader}" if change.moved else ""
        yield f"      {change.at:%H:%M:%S} {change.name} {list(change.order_before)} -> {list(change.order)}{leader}"
    if len(outcome.changes) > SHOWN_CHANGES:
        yield f"      and {len(outcome.changes) - SHOWN_CHANGES} more partitions"
    if not rows and not outcome.changes:
        yield "    nothing moves, and no broker is demoted"


def _leaders(one: PolicyDiff) -> list[dict[str, int]]:
    """Leaders of each broker now, and at the end with each policy."""
    current = {"current": one.current.cluster.leaders()} if one.current is not None else {}
    counts = {"now": one.situation.cluster.leaders(), **current, "changed": one.changed.cluster.leaders()}
    return [{"broker": broker, **{n: of.get(broker, 0) for n, of in counts.items()}} for broker in counts["now"]]


def _document(one: PolicyDiff, seconds: float) -> dict[str, Any]:
    return {
        "policy": one.name,
        "namespace": one.namespace,
        "seconds": seconds,
        "settings": [{"field": f, "before": before, "after": after} for f, before, after in one.fields],
        "current": _forecast(one.current) if one.current is not None else None,
        "changed": _forecast(one.changed),
        "notes": one.notes,
        "leaders": _leaders(one),
        "differs": one.differs,
    }


def _forecast(outcome: Forecast) -> dict[str, Any]:
    changes = [
        picked(change, "at")
        | {"partition": str(change.name)}
        | picked(change, "order_before order leader_before leader")
        for change in outcome.changes
    ]
    return {
        "demoted": sorted(outcome.demoted),
        "leadersMoved": outcome.moved,
        "timeline": [row.document() for row in outcome.rows],
        "changes": changes,
    }


def _shown(value: Any) -> str:
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)


def _settings(policy: LeadershipPolicy | None) -> dict[str, Any]:
    """A policy's fields, and those of its SignalSources and its LeaderRebalance."""
    if policy is None:
        return {"spec": {}}
    objects = [one.source for one in policy.sources.used] + ([policy.rebalance] if policy.rebalance else [])
    return {"spec": policy.spec.body(), **{f"{one.kind} {one.metadata.name}": one.spec.body() for one in objects}}


def _changed_fields(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Fields that differ, with both values; None where there is none."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _changed_fields(before.get(key), after.get(key), f"{path}.{key}".removeprefix("."))
    elif before != after:
        yield path, before, after
