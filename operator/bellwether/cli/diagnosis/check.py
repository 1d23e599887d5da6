"""``bellwether check``: does an installation work: CRDs, permissions, operator and Leases.

In: the API, as the operator's own account, and the operator's address. Out: a line for each check, and exit status 1
when one fails until the time is over. The chart's test pod runs it; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click
import requests

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEASES,
    POLICIES,
    KubernetesClient,
    NotFound,
    Object,
    Resource,
    connect,
)
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError
from bellwether.telemetry import logs

_POLL_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_WORDS = 300


def check(namespaces: tuple[str, ...], lease_namespace: str, address: str | None, wait_seconds: int) -> None:
    """Check an installation."""
    logs.configure("auto", "warning")
    try:
        api = connect()
    except BellwetherError as error:
        raise click.ClickException(str(error)) from error
    findings = examined(Installation(api, namespaces, lease_namespace, address), SystemClock(), wait_seconds)
    for finding in findings:
        click.echo(f"{'ok    ' if finding.well else 'FAILED'}  {finding.what}: {finding.words}")
    if not all(finding.well for finding in findings):
        raise click.ClickException("the installation is not well; what failed says what to do")


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check."""

    what: str
    well: bool
    words: str


@dataclass(frozen=True, slots=True)
class Installation:
    """What is looked at. ``namespaces`` none: all."""

    api: KubernetesClient
    namespaces: Sequence[str]
    lease_namespace: str
    address: str | None


def examined(at: Installation, clock: Clock, wait_seconds: float) -> list[Finding]:
    """Every check, again and again until all are well or the time is over."""
    last = clock.monotonic() + wait_seconds
    while True:
        findings = _once(at)
        if all(finding.well for finding in findings) or clock.monotonic() >= last:
            return findings
        clock.sleep(_POLL_SECONDS)


def _once(at: Installation) -> list[Finding]:
    steps: list[tuple[str, Callable[[Installation], Iterator[Finding]]]] = [
        ("definitions", _definitions),
        ("permissions", _permissions),
        ("operator", _operator),
        ("leases", _leases),
    ]
    found: list[Finding] = []
    for what, step in steps:
        try:
            found += step(at)
        except BellwetherError as error:
            found.append(Finding(what, False, str(error)))
    return found


def _definitions(at: Installation) -> Iterator[Finding]:
    for resource in (POLICIES, BROKER_HEALTHS):
        try:
            _everywhere(at, resource)
        except NotFound:
            words = f"{resource.plural} are not served: install the definitions (crds.install, or crds/)"
            yield Finding("definitions", False, words)
        else:
            yield Finding("definitions", True, f"{resource.plural} are served as {resource.api_version}")


def _permissions(at: Installation) -> Iterator[Finding]:
    lacking = [str(missing) for missing in operator_lacks(at.api, at.namespaces, at.lease_namespace)]
    yield from (Finding("permissions", False, f"missing: {one}") for one in lacking)
    if not lacking:
        yield Finding("permissions", True, "this account may do all that the operator does")


def _operator(at: Installation) -> Iterator[Finding]:
    if at.address is None:
        return
    url = f"{at.address.rstrip('/')}/readyz"
    try:
        with requests.Session() as session:
            session.trust_env = False  # a proxy of this machine knows no Service
            answer = session.get(url, timeout=_ANSWER_SECONDS)
    except requests.RequestException as error:
        yield Finding("operator", False, f"{url} does not answer ({type(error).__name__}): look at its pods' logs")
        return
    said = " ".join(answer.text.split())[:_WORDS]
    yield Finding("operator", answer.status_code == requests.codes.ok, f"{url}: {answer.status_code} {said}".rstrip())


def _leases(at: Installation) -> Iterator[Finding]:
    try:
        policies = _everywhere(at, POLICIES)
    except NotFound:
        return  # said above
    for policy in policies:
        name = f"policy {policy['metadata']['namespace']}/{policy['metadata']['name']}"
        cluster = (policy.get("status") or {}).get("clusterId")
        if not cluster:
            yield Finding("leases", True, f"{name}: {_readiness(policy)}")
            continue
        lease = at.api.find(LEASES, at.lease_namespace, object_names.cluster_lease(cluster))
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity")
        words = f"{name}: {f'led by {holder}' if holder else f'nobody leads Kafka cluster {cluster}'}"
        yield Finding("leases", bool(holder), words)
    if not policies:
        yield Finding("leases", True, "there is no policy yet, so none is needed")


def _everywhere(at: Installation, resource: Resource) -> list[Object]:
    return [one for namespace in at.namespaces or (None,) for one in at.api.list(resource, namespace)]


def _readiness(policy: Object) -> str:
    """Why a policy whose Kafka cluster was never seen is not at work, as its own condition has it."""
    for condition in (policy.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Ready":
            return f"its cluster was not seen yet: {condition.get('reason')}: {condition.get('message')}"
    return "its cluster was not seen yet"
