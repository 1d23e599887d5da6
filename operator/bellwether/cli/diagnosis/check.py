"""``bellwether check``: check an installation: CRDs, permissions, operator and Leases.

In: the Kubernetes API, with the operator's ServiceAccount, and the operator's URL. Out: one line per check, and exit
status 4 if a check still fails at the time limit. The chart's test pod runs it. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import KINDS, LEASES, POLICIES, KubernetesClient, Object, Resource
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target, clusterwide, connect
from bellwether.cli.leadership.broker_lookup import condition
from bellwether.cli.output import OUTPUT, print_document
from bellwether.cli.process_options import namespaces_option
from bellwether.core.reasons import Reason
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError

_POLL_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_BODY_CHARACTERS = 300

CHECK_OPERATOR = (
    "check that an operator is running, that it watches the policy's namespace (chart value watchNamespaces), and that"
    " --lease-namespace is the namespace of its Leases"
)

ASK = "without a policy only its URL shows that it runs: set --operator"


@click.command()
@namespaces_option("Check only this namespace")
@clusterwide
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Namespace of the Leases of Kafka clusters.",
)
@click.option(
    "--operator", "address", metavar="URL", help="Operator's URL; checks /readyz.  [default: judge by Leases]"
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.IntRange(0, 3600),
    default=0,
    show_default=True,
    help="Retry for at most this many seconds until every check passes.",
)
@OUTPUT
def check(
    target: Target,
    namespaces: tuple[str, ...],
    lease_namespace: str,
    address: str | None,
    wait_seconds: int,
    output: str,
) -> None:
    """Check that an installation works.

    Checks the CRDs, the permissions of this account, the operator's readiness, and that an operator renews the Lease of
    each Kafka cluster. Without --operator it fails if no Lease shows a running operator. Changes nothing. Run it with
    the operator's ServiceAccount, as `helm test` does. Exit status 4 if a check fails.
    """
    from bellwether.telemetry import logs

    logs.configure("auto", "warning")
    api, _ = connect(target)
    findings = examined(Installation(api, namespaces, lease_namespace, address, SystemClock()), wait_seconds)
    failed = sum(not finding.passed for finding in findings)
    if output != "table":
        print_document(findings, output)
    else:
        for finding in findings:
            click.echo(f"{'ok    ' if finding.passed else 'FAILED'}  {finding.what}: {finding.message}")
        if failed:
            click.echo(f"{failed} of {len(findings)} checks failed; see the lines marked FAILED", err=True)
    if failed:
        raise click.exceptions.Exit(exit_status.FOUND)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    what: str
    passed: bool
    message: str


@dataclass(frozen=True, slots=True)
class Installation:
    """Installation to check. Empty ``namespaces``: all."""

    api: KubernetesClient
    namespaces: Sequence[str]
    lease_namespace: str
    address: str | None
    clock: Clock


def examined(at: Installation, wait_seconds: float) -> list[Finding]:
    """Run all checks, repeatedly until all pass or the time limit is reached."""
    last = at.clock.monotonic() + wait_seconds
    while True:
        findings = [finding for what, step in _STEPS.items() for finding in _reported(what, step, at)]
        if all(finding.passed for finding in findings) or at.clock.monotonic() >= last:
            return findings
        at.clock.sleep(_POLL_SECONDS)


def _reported(what: str, step: Callable[[Installation], Iterator[Finding]], at: Installation) -> Iterator[Finding]:
    try:
        yield from step(at)
    except BellwetherError as error:
        yield Finding(what, False, str(error))


def _definitions(at: Installation) -> Iterator[Finding]:
    for resource in KINDS:
        try:
            _everywhere(at, resource)
        except NotFound:
            message = f"{resource.plural} are not served: install the CRDs (chart value crds.install, or crds/)"
            yield Finding("CRDs", False, message)
        else:
            yield Finding("CRDs", True, f"{resource.plural} are served as {resource.api_version}")


def _permissions(at: Installation) -> Iterator[Finding]:
    lacking = list(operator_lacks(at.api, at.namespaces, at.lease_namespace))
    yield from (Finding("permissions", False, f"missing: {one}") for one in lacking)
    if not lacking:
        yield Finding("permissions", True, "this account has all permissions of the operator")


def _operator(at: Installation) -> Iterator[Finding]:
    import requests

    if at.address is None:
        return
    url = f"{at.address.rstrip('/')}/readyz"
    try:
        with requests.Session() as session:
            session.trust_env = False  # a proxy cannot resolve a Service
            answer = session.get(url, timeout=_ANSWER_SECONDS)
    except requests.RequestException as error:
        yield Finding(
            "operator",
            False,
            f"{url} is not reachable ({type(error).__name__}): check the operator's pods and their logs",
        )
        return
    body = " ".join(answer.text.split())[:_BODY_CHARACTERS]
    yield Finding("operator", answer.status_code == requests.codes.ok, f"{url}: {answer.status_code} {body}".rstrip())


def _leases(at: Installation) -> Iterator[Finding]:
    from bellwether.api.v1alpha1.status.status_conditions import NO_OPERATOR

    try:
        policies = _everywhere(at, POLICIES)
    except NotFound:
        return  # already reported
    renewed = False
    for policy in policies:
        name = f"policy {policy['metadata']['namespace']}/{policy['metadata']['name']}"
        cluster, ready = (policy.get("status") or {}).get("clusterId"), condition(policy, "Ready") or {}
        said = f": {ready.get('reason')}: {ready.get('message')}" if ready else ""
        if not ready or ready.get("reason") == NO_OPERATOR:
            yield Finding("leases", False, f"{name}: never reconciled: {CHECK_OPERATOR}")
            continue
        if not cluster:
            yield Finding("leases", True, f"{name}: Kafka cluster not contacted yet{said}")
            continue
        if ready.get("reason") == Reason.INVALID_POLICY:
            yield Finding("leases", True, f"{name}: not reconciled{said}")
        holder, message = _lease(at, cluster, str(policy["status"].get("operator", "")).rpartition("/")[0])
        renewed |= holder
        yield Finding("leases", holder, f"{name}: {message}")
    if not policies:
        yield Finding("leases", True, "no LeadershipPolicy exists, so no Lease is needed")
    if at.address is None and not renewed:
        yield Finding(
            "operator", False, f"no Lease of a Kafka cluster shows a running operator: {CHECK_OPERATOR}; {ASK}"
        )


def _lease(at: Installation, cluster: str, reported: str) -> tuple[bool, str]:
    """Whether an operator renews the Lease of a Kafka cluster, and which; ``reported``: its namespace by the status."""
    from bellwether.cli.diagnosis.policy_view import LEASE_SECONDS, lease_time

    spec = (at.api.find(LEASES, at.lease_namespace, object_names.cluster_lease(cluster)) or {}).get("spec") or {}
    holder, last = spec.get("holderIdentity"), lease_time(spec)
    if not holder or last is None:
        text = f"no operator holds the Lease of Kafka cluster {cluster}"
        if reported and reported != at.lease_namespace:
            remedy = f"the policy's status names Leases in {reported}: set --lease-namespace {reported}"
            return False, f"{text} in namespace {at.lease_namespace}: {remedy}"
        return False, f"{text}: {CHECK_OPERATOR}"
    age = (at.clock.now() - last).total_seconds()
    if age > LEASE_SECONDS:
        text = (
            f"{holder} does not renew the Lease of Kafka cluster {cluster}: last renewed {age:.0f} s ago by the clock"
        )
        return False, f"{text} of this machine, at most {LEASE_SECONDS:.0f} s expected: {CHECK_OPERATOR}"
    return True, f"Lease held by {holder}"


def _everywhere(at: Installation, resource: Resource) -> list[Object]:
    return [one for namespace in at.namespaces or (None,) for one in at.api.list(resource, namespace)]


_STEPS: Mapping[str, Callable[[Installation], Iterator[Finding]]] = {
    "CRDs": _definitions,
    "permissions": _permissions,
    "operator": _operator,
    "leases": _leases,
}
