"""Request a load plan from the operator, or approve one, and report progress.

In: the LeaderRebalance of a policy, polled. Out: the final state of the run, and progress messages. Called by
``bellwether rebalance`` with ``--policy``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, KubernetesClient
from bellwether.adapters.kubernetes.objects.leader_rebalances import with_rebalances
from bellwether.api.v1alpha1.leader_rebalance import APPROVE_ANNOTATION, REQUEST_ANNOTATION, LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli import exit_status
from bellwether.cli.leadership import broker_lookup
from bellwether.core.reasons import Reason
from bellwether.core.settings.rebalance import Approval
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.rebalance import RunState
from bellwether_load.controller.lifecycle import UNDER_WAY, Run

POLL_SECONDS = 0.5

Say = Callable[[str], None]


def request_plan(api: KubernetesClient, namespace: str, policy: str, token: str, seconds: float, say: Say) -> Run:
    """Request a plan and wait for the result. Terminal without a LeaderRebalance or its store.

    Exit status ``BLOCKED`` at the time limit.
    """
    _annotate(api, rebalance_of(api, namespace, policy), REQUEST_ANNOTATION, token)
    say(f"policy {namespace}/{policy}: plan requested")

    def planned(run: Run) -> bool:
        if run.reason == Reason.INVALID_POLICY and run.request != token:
            raise Terminal(run.message)
        return run.request == token and run.state is not RunState.RUNNING

    return _await(api, namespace, policy, planned, seconds, say)


def current_plan(api: KubernetesClient, namespace: str, policy: str, digest: str) -> Run:
    """The policy's present plan. Terminal if it has another digest."""
    run = rebalance_of(api, namespace, policy).status
    if run.digest != digest:
        present = f"its plan is {run.digest} ({run.state})" if run.digest else f"it has no plan ({run.state})"
        raise Terminal(f"policy {namespace}/{policy} has no plan {digest}: {present}")
    return run


def approve(api: KubernetesClient, namespace: str, policy: str, digest: str, seconds: float, say: Say) -> Run:
    """Approve the plan with this digest, and wait until it is applied; with 0 seconds, do not wait.

    Terminal if it is not the present plan; exit status ``BLOCKED`` at the time limit.
    """
    run = current_plan(api, namespace, policy, digest)
    _annotate(api, rebalance_of(api, namespace, policy), APPROVE_ANNOTATION, digest)
    say(f"plan {digest} is approved")
    if seconds <= 0:
        return run

    def ended(run: Run) -> bool:
        return run.digest != digest or run.state not in (*UNDER_WAY, RunState.PROPOSED)

    return _await(api, namespace, policy, ended, seconds, say)


def approves_itself(api: KubernetesClient, namespace: str, policy: str) -> bool:
    """Whether the operator applies a plan of this policy without the approval of a person."""
    return rebalance_of(api, namespace, policy).spec.approval is Approval.AUTOMATIC


def rebalance_of(api: KubernetesClient, namespace: str, policy: str) -> LeaderRebalance:
    """The LeaderRebalance that a policy uses. Terminal if there is none."""
    found = with_rebalances(api, LeadershipPolicy.read(broker_lookup.find_policy(api, namespace, policy)), namespace)
    if found.rebalance is not None:
        return found.rebalance
    why = next((text for _, text in found.rebalances.unused.values()), "create one, as in examples/policies")
    raise Terminal(f"policy {namespace}/{policy} has no LeaderRebalance: {why}")


def _annotate(api: KubernetesClient, found: LeaderRebalance, name: str, value: str) -> None:
    head = found.metadata
    api.merge(LEADER_REBALANCES, head.namespace, head.name, {"metadata": {"annotations": {name: value}}})


def _await(
    api: KubernetesClient, namespace: str, policy: str, over: Callable[[Run], bool], seconds: float, say: Say
) -> Run:
    end = time.monotonic() + seconds
    printed = ""
    while True:
        try:
            run = rebalance_of(api, namespace, policy).status
            problem = broker_lookup.trouble(broker_lookup.find_policy(api, namespace, policy))
            text = f"{run.state}: {run.message}" + (f"; {problem}" if problem else "")
        except Transient as error:
            run, text = None, f"retrying: {error}"
        if run is not None and over(run):
            if text != printed:
                say(text)
            return run
        if text != printed:
            say(text)
            printed = text
        if time.monotonic() >= end:
            click.echo(
                f"not finished within {seconds:g} s: see `bellwether status --policy {policy} -n {namespace}`", err=True
            )
            raise click.exceptions.Exit(exit_status.BLOCKED)
        time.sleep(POLL_SECONDS)
