"""Request a load plan from the operator, or approve one, and report progress.

In: LeadershipPolicy objects, polled. Out: the final state of the run, and progress messages. Called by
``bellwether rebalance`` with ``--policy``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli import exit_status
from bellwether.cli.leadership import broker_lookup
from bellwether.controllers.policy_rebalance import APPROVE_ANNOTATION
from bellwether.core.reasons import Reason
from bellwether.core.settings.rebalance import Approval
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.rebalance import RunState
from bellwether_load.controller.lifecycle import UNDER_WAY, RebalanceRun
from bellwether_load.controller.rebalance_controller import REQUEST_ANNOTATION
from bellwether_load.controller.run_status import run_of

POLL_SECONDS = 0.5

Say = Callable[[str], None]


def request_plan(
    api: KubernetesClient, namespace: str, policy: str, token: str, seconds: float, say: Say
) -> RebalanceRun:
    """Request a plan and wait for the result. Terminal without spec.rebalance or its store.

    Exit status ``BLOCKED`` at the time limit.
    """
    _rebalanced(api, namespace, policy)
    _annotate(api, namespace, policy, REQUEST_ANNOTATION, token)
    say(f"policy {namespace}/{policy}: plan requested")

    def planned(run: RebalanceRun) -> bool:
        if run.reason is Reason.INVALID_POLICY and run.request != token:
            raise Terminal(run.message)
        return run.request == token and run.state is not RunState.RUNNING

    return _await(api, namespace, policy, planned, seconds, say)


def current_plan(api: KubernetesClient, namespace: str, policy: str, digest: str) -> RebalanceRun:
    """The policy's present plan. Terminal if it has another digest."""
    run = run_of(_rebalanced(api, namespace, policy).status.rebalance)
    if run.digest != digest:
        present = f"its plan is {run.digest} ({run.state})" if run.digest else f"it has no plan ({run.state})"
        raise Terminal(f"policy {namespace}/{policy} has no plan {digest}: {present}")
    return run


def approve(api: KubernetesClient, namespace: str, policy: str, digest: str, seconds: float, say: Say) -> RebalanceRun:
    """Approve the plan with this digest, and wait until it is applied; with 0 seconds, do not wait.

    Terminal if it is not the present plan; exit status ``BLOCKED`` at the time limit.
    """
    run = current_plan(api, namespace, policy, digest)
    _annotate(api, namespace, policy, APPROVE_ANNOTATION, digest)
    say(f"plan {digest} is approved")
    if seconds <= 0:
        return run

    def ended(run: RebalanceRun) -> bool:
        return run.digest != digest or run.state not in (*UNDER_WAY, RunState.PROPOSED)

    return _await(api, namespace, policy, ended, seconds, say)


def approves_itself(api: KubernetesClient, namespace: str, policy: str) -> bool:
    """Whether the operator applies a plan of this policy without the approval of a person."""
    settings = _rebalanced(api, namespace, policy).spec.rebalance
    return settings is not None and settings.approval is Approval.AUTOMATIC


def _rebalanced(api: KubernetesClient, namespace: str, policy: str) -> LeadershipPolicy:
    found = LeadershipPolicy.read(broker_lookup.find_policy(api, namespace, policy))
    if found.spec.rebalance is None:
        raise Terminal(f"policy {namespace}/{policy} has no spec.rebalance: add it, as in examples/policies")
    return found


def _annotate(api: KubernetesClient, namespace: str, policy: str, name: str, value: str) -> None:
    api.merge(POLICIES, namespace, policy, {"metadata": {"annotations": {name: value}}})


def _await(
    api: KubernetesClient, namespace: str, policy: str, over: Callable[[RebalanceRun], bool], seconds: float, say: Say
) -> RebalanceRun:
    end = time.monotonic() + seconds
    printed = ""
    while True:
        try:
            body = broker_lookup.find_policy(api, namespace, policy)
            run = run_of(LeadershipPolicy.read(body).status.rebalance)
            problem = broker_lookup.trouble(body)
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
