"""Values of load rebalancing: the operator configuration that policies refer to by name, with the chart's defaults."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bellwether.api.config.field_types import ALL_NAMESPACES, ConfigName, ObjectName
from bellwether_load.api.job_profile import Image, JobProfile
from bellwether_load.api.load_config import LoadStore
from chartvalues.shared_values import Model


class Profile(JobProfile):
    """A job profile; the templates complete what is empty."""

    image: Image | None = Field(  # type: ignore[assignment]
        default=None, description="Container image with Bellwether and Spark. Empty: that of spark.image."
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount of the job's pods, in the policy's namespace. Empty: for SparkOnKubernetes that of"
        " spark.serviceAccount.",
    )

    def model_post_init(self, _context: Any) -> None:
        """Checked by the operator, after the templates have completed it."""


class Load(Model):
    """Stores and job profiles, by the names that LeaderRebalances use (spec.store and spec.profile)."""

    stores: dict[ConfigName, LoadStore] = Field(
        default_factory=dict,
        description="Stores for load samples and plans, by name; a policy that names none uses default. Empty: no"
        " policy can rebalance by load.",
    )
    profiles: dict[ConfigName, Profile] = Field(
        default_factory=lambda: {"default": Profile(namespaces=(ALL_NAMESPACES,))},
        description="Job profiles, by name; a policy that names none uses default.",
    )
