"""Completion of names in the cluster: policies, brokers, racks, namespaces, contexts.

The shell waits for it, so the cluster is asked for a bounded time, and whatever fails completes nothing and says
nothing. Clients are imported only when such a name is completed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import click

SECONDS = 2.0
"""How long a completion waits for the cluster."""

Names = Callable[[click.Context], Iterable[str]]
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _completer(names: Names) -> Completer:
    """Complete one of these names; those that were given before are left out."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        given = {str(value) for value in context.params.get(parameter.name or "") or () if not isinstance(value, str)}
        found = [name for name in _in_time(names, context) if name.startswith(incomplete) and name not in given]
        return sorted(found, key=lambda name: (len(name), name) if name.isdecimal() else (0, name))

    return complete


def _in_time(names: Names, context: click.Context) -> list[str]:
    found: list[str] = []

    def read() -> None:
        with suppress(Exception):
            found.extend(dict.fromkeys(names(context)))

    logging.disable(logging.CRITICAL)  # a client must not write into the command line
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(SECONDS)
    logging.disable(logging.NOTSET)
    return [] if reader.is_alive() else found


def _listed(context: click.Context, kind: str, *, everywhere: bool = False) -> list[dict[str, Any]]:
    """Objects of the namespace that the command line names so far."""
    from bellwether.adapters.kubernetes import api_client, kubeconfig

    options = context.params
    found = kubeconfig.api_access(options.get("kubeconfig"), options.get("context"))
    named = options.get("namespace") or next(iter(options.get("namespaces") or ()), None)
    api = api_client.from_configuration(found.configuration, SECONDS)
    return api.list(getattr(api_client, kind), None if everywhere else named or found.namespace)


def _healths(context: click.Context) -> list[dict[str, Any]]:
    """BrokerHealths of the policy, or of all policies of the namespace."""
    policy = context.params.get("policy")
    found = _listed(context, "BROKER_HEALTHS")
    return [one for one in found if policy in (None, one["spec"]["policyRef"]["name"])]


def _contexts(context: click.Context) -> Iterable[str]:
    from bellwether.adapters.kubernetes.kubeconfig import context_names

    return context_names(context.params.get("kubeconfig"))


policies = _completer(lambda at: [str(one["metadata"]["name"]) for one in _listed(at, "POLICIES")])
namespaces = _completer(lambda at: [one["metadata"]["namespace"] for one in _listed(at, "POLICIES", everywhere=True)])
brokers = _completer(lambda at: [str(one["spec"]["brokerId"]) for one in _healths(at)])
racks = _completer(lambda at: [rack for one in _healths(at) if (rack := (one.get("status") or {}).get("rack"))])
contexts = _completer(_contexts)
