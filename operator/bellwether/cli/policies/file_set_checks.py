"""Judge policy files together: two policies for one cluster, sources, rebalances, probers, Secrets, racks.

In: the objects of all files that were given. Out: problems that the API server cannot know. A check is made only if the
files contain what it compares with: probers, Secrets, chart values, or a description of the cluster.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import PURPOSE, PURPOSE_LABEL
from bellwether.api.v1alpha1.leader_rebalance import policy_named
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.validation_errors import nearest
from bellwether.cli.policies.gitops_files import as_list, is_chart_values
from bellwether.cli.policies.object_checks import ERROR, WARNING, FoundObject, Problem
from bellwether.cli.policies.yaml_documents import Path_


@dataclass(frozen=True, slots=True)
class FoundPolicy:
    """A valid policy, and where it is written."""

    found: FoundObject
    policy: LeadershipPolicy

    def served_by(self, prober: Prober) -> bool:
        """Whether the prober serves this policy; a namespace that is not written may be any."""
        named = prober.policy in ("", self.found.name)
        return named and (not prober.namespaces or self.found.namespace in ("", *prober.namespaces))

    def with_objects(self, sources: Iterable[FoundObject], rebalances: Iterable[FoundObject]) -> FoundPolicy:
        """The same with the objects for it; where there are no SignalSources, it is not known what it names."""
        policy = self.policy.with_rebalances(one.value for one in self.near(rebalances))
        mine = [one.value for one in self.near(sources)]
        return replace(self, policy=policy.with_sources(mine) if mine else policy)

    def near(self, objects: Iterable[FoundObject]) -> Iterator[FoundObject]:
        """Those of the objects that may be in the policy's namespace."""
        own = self.found.namespace
        return (one for one in objects if in_one_tree(self.found, one) and (not own or one.namespace in ("", own)))


@dataclass(frozen=True, slots=True)
class Prober:
    """A prober of a vantage, from chart values or from a Deployment: of one policy, or (empty) of every policy of some
    namespaces, or (none) of all.
    """

    namespaces: Collection[str]
    policy: str
    vantage: str
    found: FoundObject
    location: Path_


def check_together(
    policies: Sequence[FoundPolicy],
    sources: Sequence[FoundObject],
    rebalances: Sequence[FoundObject],
    others: Sequence[FoundObject],
    racks: Collection[str] | None,
) -> Iterator[Problem]:
    """Problems between the objects of all files; ``sources`` are SignalSources, ``rebalances`` LeaderRebalances, and
    ``racks`` those of the described cluster, if there is one.
    """
    yield from _one_policy_each(policies)
    yield from _vantages(policies, [prober for one in others for prober in _probers(one)])
    for one in policies:
        for index, text in one.policy.sources.problems.items():
            location = ("spec", "detection", "signalSources", index)
            yield one.found.problem(WARNING, "source", location, f"{text}; this policy is not judged by it")
    yield from _rebalances(policies, rebalances)
    owners = [*(one.found for one in policies), *sources]
    yield from _secrets(owners, [one for one in others if one.kind == "Secret"])
    for values in others:
        if is_chart_values(values.value):
            yield from _secret_names(owners, values)
    if racks is not None:
        for found in (*(one.found for one in policies), *rebalances):
            yield from _racks(found, racks)


def _rebalances(policies: Sequence[FoundPolicy], rebalances: Sequence[FoundObject]) -> Iterator[Problem]:
    """LeaderRebalances that no policy uses, and limits by load that no LeaderRebalance serves."""
    for found in rebalances:
        near, named = [one for one in policies if found in one.near([found])], policy_named(found.value)
        names = {one.found.name for one in near}
        if near and named not in names:
            text = f"no LeadershipPolicy {named} is among these files{nearest(named, names)}: no policy uses it"
            yield found.problem(WARNING, "rebalance", ("spec", "policy"), text)
        for one in near:
            if (unused := one.policy.rebalances.unused.get(found.name)) is not None:
                yield found.problem(ERROR, "rebalance", ("spec",), unused[1])
    for one in policies:
        if one.policy.spec.limits_loads() and one.policy.rebalance is None:
            location = ("spec", "demotion", "capacity", "maxBytesPerSecond")
            text = (
                f"limits nothing unless a LeaderRebalance names policy {one.found.name}, whose plans measure the load:"
                " none is among these files"
            )
            yield one.found.problem(WARNING, "rebalance", location, text)


def in_one_tree(one: FoundObject, other: FoundObject) -> bool:
    """Whether two objects may be of one Kubernetes cluster: the folder of one has the other, or is the same.

    ``clusters/staging`` and ``clusters/prod`` are two clusters, which may have the same names and addresses.
    """
    first, second = _folder(one.file), _folder(other.file)
    return first.is_relative_to(second) or second.is_relative_to(first)


@lru_cache(maxsize=5000)
def _folder(file: str) -> Path:
    return Path(file).absolute().parent


def _one_policy_each(policies: Sequence[FoundPolicy]) -> Iterator[Problem]:
    by_name: defaultdict[tuple[str, str], list[FoundPolicy]] = defaultdict(list)
    by_address: defaultdict[str, list[FoundPolicy]] = defaultdict(list)
    for one in policies:
        found, kafka = one.found, one.policy.spec.kafka
        if (same := _added(by_name[found.namespace, found.name], one)) is not None:
            text = f"{found.title} is also in {_place(same.found)}: the one that is applied last replaces the other"
            yield found.problem(WARNING, "duplicate", ("metadata", "name"), text)
            continue
        addresses = {address.lower(): ("spec", "kafka", "bootstrapServers") for address in kafka.bootstrap_servers}
        if kafka.strimzi is not None:
            namespace = kafka.strimzi.namespace or found.namespace
            addresses = {f"Strimzi cluster {namespace}/{kafka.strimzi.cluster_name}": ("spec", "kafka", "strimzi")}
        others = {address: _added(by_address[address], one) for address in addresses}
        for address, other in others.items():
            if other is not None:
                text = (
                    f"{address} is also the cluster of {other.found.title} in {_place(other.found)}: one policy manages"
                    " a Kafka cluster, and the operator refuses the second: remove one of them"
                )
                yield found.problem(ERROR, "one-policy", addresses[address], text)
                break


def _added(known: list[FoundPolicy], one: FoundPolicy) -> FoundPolicy | None:
    """The first of these policies in the tree of another one, which is added to them."""
    found = next((other for other in known if in_one_tree(other.found, one.found)), None)
    known.append(one)
    return found


def _vantages(policies: Sequence[FoundPolicy], probers: Sequence[Prober]) -> Iterator[Problem]:
    location = ("spec", "detection", "externalReachability", "vantages")
    for one in policies:
        reachability = one.policy.policy().detection.external_reachability
        mine = [prober for prober in probers if one.served_by(prober) and in_one_tree(one.found, prober.found)]
        if not mine or not reachability.enabled or not reachability.vantages:
            continue
        probed = {prober.vantage for prober in mine}
        for index, vantage in enumerate(reachability.vantages):
            if vantage not in probed:
                text = (
                    f"vantage {vantage} has no reachability prober in these files"
                    f"{nearest(vantage, probed - set(reachability.vantages))}: it will not report, and counts as silent"
                )
                yield one.found.problem(WARNING, "vantage", (*location, index), text)
        for prober in mine:
            if prober.policy and prober.vantage not in reachability.vantages:
                text = (
                    f"vantage {prober.vantage} is not in spec.detection.externalReachability.vantages of"
                    f" {one.found.title}{nearest(prober.vantage, set(reachability.vantages) - probed)}: its signals are"
                    " ignored"
                )
                yield prober.found.problem(WARNING, "vantage", prober.location, text)


def _probers(found: FoundObject) -> Iterator[Prober]:
    """Reachability probers in chart values, or in the containers of a workload."""
    if is_chart_values(found.value):
        for index, entry in enumerate(as_list(found.value.get("probers"))):
            if isinstance(entry, Mapping) and entry.get("kind") == "Reachability":
                namespaces = as_list(entry.get("namespaces")) or as_list(found.value.get("watchNamespaces"))
                served = tuple(str(one) for one in namespaces)
                yield Prober(served, "", str(entry.get("vantage") or ""), found, ("probers", index, "vantage"))
        return
    spec = _mapping(_mapping(_mapping(found.value.get("spec")).get("template")).get("spec"))
    for index, container in enumerate(as_list(spec.get("containers"))):
        words = [str(word) for key in ("command", "args") for word in as_list(_mapping(container).get(key))]
        given = _options([part for text in words for part in (shlex.split(text) if " --" in text else [text])])
        if vantage := given.get("vantage"):
            place = ("spec", "template", "spec", "containers", index, "args")
            yield Prober(given["namespaces"], given["policy"] or "", vantage, found, place)


def _options(words: list[str]) -> Mapping[str, Any]:
    """Options of a reachability prober; empty if the words are no such command."""
    if "reachability" not in words or "probe" not in words:
        return {}
    from bellwether.cli.probe.reachability import reachability

    try:
        return reachability.make_context("", words[words.index("reachability") + 1 :], resilient_parsing=True).params
    except click.UsageError:  # of another version, or of another program
        return {}


def _secrets(owners: Sequence[FoundObject], secrets: Sequence[FoundObject]) -> Iterator[Problem]:
    for one in owners:
        by_name: dict[str, list[FoundObject]] = defaultdict(list)
        for secret in secrets:
            if in_one_tree(one, secret):
                by_name[secret.name].append(secret)
        for location, name in secret_references(one.value) if by_name else ():
            mine = [s for s in by_name[name] if not s.namespace or one.namespace in ("", s.namespace)]
            if not mine:
                text = (
                    f"Secret {name} is not among these files{nearest(name, by_name.keys() - {name})}: {one.kind}"
                    f" {one.name} is not Ready until it exists in its namespace"
                )
                yield one.problem(WARNING, "secret", location, text)
            for secret in mine:
                if _mapping(secret.metadata.get("labels")).get(PURPOSE_LABEL) != PURPOSE:
                    text = (
                        f"Secret {name} lacks the label {PURPOSE_LABEL}={PURPOSE}: an operator that may read any Secret"
                        f" (chart value rbac.anySecret) refuses it for {one.title}"
                    )
                    yield secret.problem(WARNING, "secret", ("metadata",), text)


def _secret_names(owners: Sequence[FoundObject], values: FoundObject) -> Iterator[Problem]:
    """Secrets of policies and sources that the chart's RBAC does not name."""
    rbac = values.value.get("rbac")
    if not isinstance(rbac, Mapping) or rbac.get("anySecret") or "secretNames" not in rbac:
        return
    named = [str(name) for name in as_list(rbac["secretNames"])]
    for one in (one for one in owners if in_one_tree(one, values)):
        for location, name in secret_references(one.value):
            if name not in named:
                text = (
                    f"Secret {name} is not in rbac.secretNames of {values.file}{nearest(name, named)}: operator and"
                    " probers may not read it"
                )
                yield one.problem(WARNING, "secret", location, text)


def secret_references(value: Any) -> Iterator[tuple[Path_, str]]:
    """Names of Secrets in an object: fields that end in SecretName, and the name in a field that ends in SecretRef."""
    for place, key, inside in _fields(value):
        if key.endswith("SecretName") and isinstance(inside, str):
            yield place, inside
        elif key.endswith("SecretRef") and isinstance(inside, Mapping) and "name" in inside:
            yield (*place, "name"), str(inside["name"])


def _fields(value: Any, location: Path_ = ()) -> Iterator[tuple[Path_, str, Any]]:
    """All fields of an object and of what is in it: place, name and value."""
    entries = value.items() if isinstance(value, Mapping) else enumerate(as_list(value))
    for key, inside in entries:
        if isinstance(key, str):
            yield (*location, key), key, inside
        yield from _fields(inside, (*location, key))


def _racks(found: FoundObject, racks: Collection[str]) -> Iterator[Problem]:
    for location, rack in _named_racks(found.value.get("spec")):
        if rack not in racks:
            text = (
                f"no broker is in rack {rack}{nearest(rack, racks)}: the racks are {', '.join(sorted(racks)) or 'none'}"
            )
            yield found.problem(ERROR, "rack", location, text)


def _named_racks(spec: Any) -> Iterator[tuple[Path_, str]]:
    for place, key, inside in _fields(spec, ("spec",)):
        if key in ("racks", "preferredRacks"):
            yield from (((*place, index), rack) for index, rack in enumerate(as_list(inside)))
        elif key == "rack":
            yield place, str(inside)


def _place(found: FoundObject) -> str:
    return f"{found.file}:{found.document.position(found.prefix).line}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
