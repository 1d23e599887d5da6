"""Operator configuration of load rebalancing: named stores and job profiles, read once at start from a YAML file.

In: the file of ``--load-config``. Out: the store and the profile that a policy names, if its namespace may use them.
Called by the operator and the sampler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import Field, ValidationError

from bellwether.api.config.field_types import Checked, ConfigName, Namespaces, ObjectName, allows
from bellwether.api.v1alpha1.base_model import Model, explain, refusal
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.rebalance_spec import LeaderRebalanceSpec
from bellwether.ports.errors import Terminal
from bellwether_load.api.job_profile import JobProfile

StoreUri = Annotated[
    str,
    Checked(
        r"^(/|[a-z][a-z0-9+.-]*://)[^\s@]*$",
        "must be an absolute path or a URI without user or password, such as s3://bucket/bellwether",
        1024,
    ),
]


class LoadStore(Model):
    """A store for load samples and plans. Each policy has its own directory in it: NAMESPACE/NAME."""

    namespaces: Annotated[Namespaces, Field(description="Namespaces whose policies may use the store; ['*'] for all.")]
    uri: Annotated[
        StoreUri,
        Field(
            description="Absolute path of a directory, or a URI that pyarrow supports (s3, gs, abfs, hdfs, file)"
            " with its options, such as ?region= or ?endpoint_override=."
        ),
    ]
    environment_secret_name: ObjectName | None = Field(
        default=None,
        description="Secret in the policy's namespace whose keys become environment variables of the jobs, such as"
        " credentials of an object store.",
    )
    persistent_volume_claim: ObjectName | None = Field(
        default=None,
        description="PersistentVolumeClaim in the policy's namespace that the jobs mount at the path in uri.",
    )

    def model_post_init(self, _context: Any) -> None:
        """Reject a claim for a store that is not a path."""
        if self.persistent_volume_claim is not None and not self.uri.startswith("/"):
            text = "requires a uri that is an absolute path, where the claim is mounted: change one of them"
            raise refusal(text, "persistentVolumeClaim")

    def uri_of(self, namespace: str, policy: str) -> str:
        """URI of a policy's own directory; the options of the store's URI remain."""
        location, mark, options = self.uri.partition("?") if "://" in self.uri else (self.uri, "", "")
        return f"{location.rstrip('/')}/{namespace}/{policy}{mark}{options}"


Usable = TypeVar("Usable", LoadStore, JobProfile)


class InvalidLoadConfig(Terminal):
    """The configuration file cannot be used. The message names the file, each invalid field and the remedy."""


class NotConfigured(Terminal):
    """A policy names a store or a profile that its namespace may not use. The message names the field and the value."""


@dataclass(frozen=True)
class LoadSettings:
    """What is configured for one policy: its store and job profile, and the URI of its own directory in the store."""

    store: LoadStore
    profile: JobProfile
    uri: str


class LoadConfig(Model):
    """Stores and job profiles of load rebalancing, by name."""

    stores: dict[ConfigName, LoadStore] = Field(default_factory=dict, description="Stores by name.")
    profiles: dict[ConfigName, JobProfile] = Field(default_factory=dict, description="Job profiles by name.")

    @classmethod
    def read(cls, path: Path | None) -> LoadConfig:
        """Read a YAML file; nothing is configured without one. Raises InvalidLoadConfig."""
        if path is None:
            return cls()
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "it is not text"
            raise InvalidLoadConfig(f"--load-config {path} cannot be read: {said}") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f" at line {mark.line + 1}" if mark is not None else ""
            raise InvalidLoadConfig(f"--load-config {path} is not YAML{where}: correct it") from None
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise InvalidLoadConfig(f"--load-config {path}: {explain(error, cls)}") from None

    def uri(self, policy: LeadershipPolicy, store: str | None = None) -> str:
        """URI of a policy's own directory in ``store``, or in the one that it names: without a LeaderRebalance the
        default of ``spec.store``. Raises NotConfigured."""
        return self._store(policy, store).uri_of(policy.metadata.namespace, policy.metadata.name)

    def settings(self, policy: LeadershipPolicy) -> LoadSettings:
        """The store and the profile that a policy's LeaderRebalance names. Raises NotConfigured."""
        named, metadata = policy.rebalance, policy.metadata
        if named is None:
            raise NotConfigured(f"policy {metadata.namespace}/{metadata.name} has no LeaderRebalance: create one")
        store = self._store(policy)
        return LoadSettings(
            store, _named("profile", self.profiles, named.spec.profile, metadata.namespace), self.uri(policy)
        )

    def _store(self, policy: LeadershipPolicy, name: str | None = None) -> LoadStore:
        metadata, used = policy.metadata, policy.rebalance
        named = used.spec if used is not None else LeaderRebalanceSpec(policy=metadata.name)
        return _named("store", self.stores, name or named.store, metadata.namespace)


def _named(field: str, configured: Mapping[str, Usable], name: str, namespace: str) -> Usable:
    """What has that name, if policies of the namespace may use it; names of other namespaces are not disclosed."""
    usable = {key: value for key, value in configured.items() if allows(value.namespaces, namespace)}
    if name in usable:
        return usable[name]
    if not usable:
        raise NotConfigured(
            f"spec.{field} is {name!r}, but LeaderRebalances in namespace {namespace} may use no {field}: the"
            f" administrator configures them with the chart value load.{field}s (--load-config)"
        )
    raise NotConfigured(
        f"spec.{field} is {name!r}, but LeaderRebalances in namespace {namespace} may only use"
        f" {', '.join(sorted(usable))}: set one of these, or let the administrator allow it (chart value"
        f" load.{field}s)"
    )
