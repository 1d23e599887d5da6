"""Load store of the operator configuration: where load samples and plans of policies are kept, and who may use it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from bellwether.api.config.field_types import Checked, Namespaces, ObjectName
from bellwether.api.v1alpha1.base_model import Model, refusal

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
