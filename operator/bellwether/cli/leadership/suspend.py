"""``bellwether suspend`` and ``resume``: set or remove ``spec.suspend`` of policies, and wait for the operator.

In: the Kubernetes API. Out: one line for each policy. Every policy is changed before the first one is waited for.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient, Object
from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import ANSWER_SECONDS, Target, connect, connect_policy, policy_options
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.leadership.wait import poll
from bellwether.cli.option_lists import with_options
from bellwether.ports.errors import BellwetherError, Terminal

_options = with_options(
    policy_options,
    click.option("--all", "everything", is_flag=True, help="All policies of all namespaces, or of --namespace."),
    click.option("--wait", "wait_seconds", default=10, show_default=True, help="Seconds to wait for the operator."),
)


@click.command()
@_options
def suspend(**options: Any) -> None:
    """Stop every move of leaders of a policy, or of all.

    Sets spec.suspend, and waits until the operator has read it: from then on nothing is moved, restored or held.
    Demoted brokers stay demoted; a broker that is held (spec.quarantine) is released. Brokers are still judged and
    reported.

    \b
    Exit status:
      0  the operator has read it
      1  a policy could not be changed
      3  no operator has confirmed it in time
    """
    _set_suspended(True, **options)


@click.command()
@_options
def resume(**options: Any) -> None:
    """Allow moves of leaders again, of a policy or of all.

    Removes spec.suspend, and waits until the operator has read it. A policy in mode Observe still moves nothing.
    Exit statuses are those of `bellwether suspend`.
    """
    _set_suspended(False, **options)


@dataclass(frozen=True, slots=True)
class Change:
    """One policy after the request; ``before`` is whether it was suspended already."""

    namespace: str
    name: str
    before: bool
    generation: int

    def __str__(self) -> str:
        return f"policy {self.namespace}/{self.name}"


def _set_suspended(suspended: bool, *, target: Target, everything: bool, wait_seconds: int) -> None:
    """Suspend or resume one policy, or all of the target's namespace (all namespaces if it names none)."""
    if everything and target.policy is not None:
        raise click.UsageError(f"--policy {target.policy} excludes --all")
    failed = False
    changes: list[Change] = []
    if everything:
        api, _ = connect(target, ANSWER_SECONDS)
        chosen = _all(api, target.namespace)
    else:
        at = connect_policy(target)
        api, chosen = at.api, [broker_lookup.find_policy(*at)]
    for one in chosen:
        try:
            changes.append(_change(api, one, suspended))
        except BellwetherError as error:
            failed = True
            click.echo(f"Error: {error}", err=True)
    unconfirmed = _confirm(api, changes, suspended, wait_seconds)
    if failed:
        raise click.exceptions.Exit(exit_status.ERROR)
    if unconfirmed:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _all(api: KubernetesClient, namespace: str | None) -> list[Object]:
    found = broker_lookup.policies(api, namespace)
    if not found and namespace is None:
        raise Terminal("there is no LeadershipPolicy in any namespace")
    if not found:
        raise Terminal(f"namespace {namespace} has no LeadershipPolicy: {broker_lookup.elsewhere(api)}")
    return sorted(found, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]))


def _change(api: KubernetesClient, policy: Object, suspended: bool) -> Change:
    namespace, name = policy["metadata"]["namespace"], policy["metadata"]["name"]
    before = bool(policy["spec"].get("suspend"))
    changed = api.merge(POLICIES, namespace, name, {"spec": {"suspend": suspended or None}})
    return Change(namespace, name, before, int(changed["metadata"].get("generation") or 0))


def _confirm(api: KubernetesClient, changes: list[Change], suspended: bool, seconds: float) -> list[Change]:
    """Print each policy that the operator has read since; those that it has not read in time."""
    waiting = list(changes)

    def read() -> tuple[str, bool | None]:
        for change in list(waiting):
            with suppress(BellwetherError):
                body = broker_lookup.find_policy(api, change.namespace, change.name)
                if ((body.get("status") or {}).get("observedGeneration") or 0) >= change.generation:
                    click.echo(f"{change}: {_read(change, body, suspended)}")
                    waiting.remove(change)
        return "", None if waiting else True

    poll(read, seconds)
    for change in waiting:
        click.echo(
            f"{change}: spec.suspend is {str(suspended).lower()}, and no operator has read it within {seconds} s: check"
            f" that one is running, with `bellwether status --policy {change.name} -n {change.namespace}`",
            err=True,
        )
    return waiting


def _read(change: Change, policy: Object, suspended: bool) -> str:
    mode = policy["spec"].get("mode")
    if not suspended:
        was = "resumed" if change.before else "was not suspended"
        return f"{was}; mode {mode}"
    was = "was suspended already" if change.before else "suspended"
    undo = f"bellwether resume --policy {change.name} -n {change.namespace}"
    demoted = ((policy.get("status") or {}).get("brokers") or {}).get("demoted") or 0
    still = f" ({demoted} brokers stay demoted)" if demoted else ""
    return f"{was}: nothing is moved or restored{still} until `{undo}`"
