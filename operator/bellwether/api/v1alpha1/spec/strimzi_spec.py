"""``spec.kafka.strimzi``: a Strimzi cluster by name, from which the connection is discovered. Part of
``spec.kafka``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Matching, Model

ResourceName = Annotated[
    str,
    Matching("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "must be a name: lower case letters, digits, '-' and '.'", 253),
]
Namespace = Annotated[
    str, Matching("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be a namespace: lower case letters, digits and '-'", 63)
]
ListenerName = Annotated[
    str, Matching("^[a-z0-9]{1,11}$", "must be a listener's name: up to 11 lower case letters and digits", 11)
]


class Strimzi(Model):
    """A Kafka cluster that Strimzi runs. What it says is followed: listeners, certificates and users may change."""

    cluster_name: Annotated[ResourceName, Field(description="Name of the Kafka resource.")]
    namespace: Namespace | None = Field(
        default=None,
        description="Namespace of the Kafka resource and of the KafkaUser. Absent: the policy's own. Another one has to"
        " agree: annotation bellwether.dev/policies-from on the Kafka resource names the namespaces, separated by"
        " commas, whose policies may use it.",
    )
    listener: ListenerName | None = Field(
        default=None,
        description="Name of the listener to connect to. Absent: the first internal one that fits the user, an"
        " encrypted one where there is one.",
    )
    user_name: ResourceName | None = Field(
        default=None,
        description="Name of the KafkaUser to connect as; authentication tls and scram-sha-512 are understood. Absent:"
        " bellwether where there is one, else nobody.",
    )
